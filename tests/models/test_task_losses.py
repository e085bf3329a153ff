"""Losses, their gradients in closed form, and predictions."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import functional

from vfedsec.config.job import Task
from vfedsec.errors import ConfigError
from vfedsec.models.tasks import balanced_weights, build_task_loss, load_custom_loss

BINARY, REGRESSION = Task(kind="binary"), Task(kind="regression")
MULTICLASS = Task(kind="multiclass", classes=("a", "b", "c"))
TASKS = [BINARY, MULTICLASS, REGRESSION]
CLASSIFICATIONS = st.sampled_from([BINARY, MULTICLASS])
WEIGHT = st.floats(0.125, 8, width=32)
EVERY_TASK = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)


def outputs_of(task: Task, rows: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, len(task.classes) or 1, generator=generator)


def labels_of(task: Task, rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if task.kind == "regression":
        return rng.normal(size=rows).astype(np.float32)
    return rng.integers(0, len(task.classes) or 2, rows).astype(np.float32)


def weighted(task: Task, weights: list[float]) -> Task:
    """The first weights, one a class."""
    return msgspec.structs.replace(task, class_weights=tuple(weights[: task.class_count]))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(TASKS),
    st.integers(1, 9),
    st.integers(0, 99),
    st.sampled_from([1.0, 50.0]),
    st.none() | st.lists(st.just(0.0) | WEIGHT, min_size=3, max_size=3),
)
def test_the_closed_form_is_what_autograd_finds(
    task: Task, rows: int, seed: int, scale: float, weights: list[float] | None
) -> None:
    if weights and task.class_count:
        task = weighted(task, weights)
    loss = build_task_loss(task)
    outputs = outputs_of(task, rows, seed, scale).requires_grad_()
    targets = loss.targets(labels_of(task, rows, seed))
    expected = loss.loss(outputs, targets)
    expected.backward()
    found, gradient = loss.loss_and_gradient(outputs.detach(), targets)
    torch.testing.assert_close(found, expected.detach())
    torch.testing.assert_close(gradient, outputs.grad, atol=1e-6, rtol=1e-5)


def test_the_loss_is_the_mean_over_rows() -> None:
    outputs = torch.tensor([[1.0], [4.0]])
    loss = build_task_loss(REGRESSION)
    assert loss.loss(outputs, loss.targets(np.array([0.0, 2.0], dtype=np.float32))) == 2.5


# -- weights of classes --


@settings(max_examples=40, deadline=None)
@given(CLASSIFICATIONS, st.integers(1, 9), st.integers(0, 99), st.lists(WEIGHT, min_size=3, max_size=3))
def test_a_weighted_loss_is_torchs_by_the_number_of_rows(
    task: Task, rows: int, seed: int, weights: list[float]
) -> None:
    outputs, labels = outputs_of(task, rows, seed), labels_of(task, rows, seed)
    loss = build_task_loss(weighted(task, weights))
    found = loss.loss(outputs, loss.targets(labels))
    numbers, by_class = torch.from_numpy(labels), torch.tensor(weights)
    if task is BINARY:
        by_row = by_class[numbers.long()]
        expected = functional.binary_cross_entropy_with_logits(outputs[:, 0], numbers, by_row)
    else:
        expected = functional.cross_entropy(outputs, numbers.long(), by_class, reduction="sum") / rows
    torch.testing.assert_close(found, expected)


def log_losses(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each row, in double precision and nothing of torch; two classes have a logit of 0 and one of their own."""
    logits = np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs
    right = logits[np.arange(len(labels)), labels.astype(int)]
    return np.log(np.exp(logits).sum(axis=1)) - right


@settings(max_examples=20, deadline=None)
@given(CLASSIFICATIONS, st.integers(1, 6), st.integers(0, 99), st.lists(WEIGHT, min_size=3, max_size=3))
def test_the_gradient_of_a_weighted_loss_is_that_of_finite_differences(
    task: Task, rows: int, seed: int, weights: list[float]
) -> None:
    outputs, labels = outputs_of(task, rows, seed), labels_of(task, rows, seed)
    loss = build_task_loss(weighted(task, weights))
    _, gradient = loss.loss_and_gradient(outputs, loss.targets(labels))

    def weighted_mean(numbers: np.ndarray) -> float:
        return float((np.array(weights)[labels.astype(int)] * log_losses(numbers, labels)).sum() / rows)

    at, step = outputs.numpy().astype(np.float64), 1e-5
    for place in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[place] = step
        slope = (weighted_mean(at + shift) - weighted_mean(at - shift)) / (2 * step)
        assert float(gradient[place]) == pytest.approx(slope, rel=1e-4, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(CLASSIFICATIONS, st.integers(1, 9), st.integers(0, 99))
def test_weights_of_one_are_no_weights(task: Task, rows: int, seed: int) -> None:
    outputs, labels = outputs_of(task, rows, seed), labels_of(task, rows, seed)
    plain, ones = build_task_loss(task), build_task_loss(weighted(task, [1.0] * 3))
    targets = plain.targets(labels)
    (loss, gradient), (same_loss, same_gradient) = (one.loss_and_gradient(outputs, targets) for one in (plain, ones))
    assert torch.equal(gradient, same_gradient)
    torch.testing.assert_close(loss, same_loss)
    assert torch.equal(plain.predict(outputs), ones.predict(outputs))


@settings(max_examples=30, deadline=None)
@given(CLASSIFICATIONS, st.integers(0, 99), st.lists(WEIGHT, min_size=3, max_size=3), WEIGHT)
def test_scaled_weights_scale_the_loss(task: Task, seed: int, weights: list[float], factor: float) -> None:
    outputs, labels = outputs_of(task, 7, seed), labels_of(task, 7, seed)
    one, other = (build_task_loss(weighted(task, [by * w for w in weights])) for by in (1.0, factor))
    targets = one.targets(labels)
    for found, scaled in zip(
        one.loss_and_gradient(outputs, targets), other.loss_and_gradient(outputs, targets), strict=True
    ):
        torch.testing.assert_close(found * factor, scaled)


@settings(max_examples=30, deadline=None)
@given(CLASSIFICATIONS, st.integers(0, 99), st.lists(WEIGHT, min_size=3, max_size=3))
def test_the_weighted_loss_of_all_rows_is_the_mean_of_their_batches(
    task: Task, seed: int, weights: list[float]
) -> None:
    """So that steps by the batch follow the loss over all rows, whatever classes a batch holds."""
    outputs, loss = outputs_of(task, 12, seed), build_task_loss(weighted(task, weights))
    targets = loss.targets(labels_of(task, 12, seed))
    batches = [loss.loss(outputs[start : start + 4], targets[start : start + 4]) for start in (0, 4, 8)]
    torch.testing.assert_close(torch.stack(batches).mean(), loss.loss(outputs, targets))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_classes_are_balanced_as_scikit_learn_does(labels: list[int]) -> None:
    occurring = sorted(set(labels))
    weights = balanced_weights(np.bincount(labels, minlength=5).tolist())
    expected = compute_class_weight("balanced", classes=np.array(occurring), y=labels)
    assert [weights[label] for label in occurring] == pytest.approx(expected.tolist())
    assert np.mean([weights[label] for label in labels]) == pytest.approx(1)


@given(st.integers(1, 2**31 - 1), st.integers(1, 5))
def test_balanced_classes_weigh_alike(rows: int, classes: int) -> None:
    assert balanced_weights([rows] * classes) == (1.0,) * classes


def test_a_class_without_rows_weighs_nothing_and_is_not_counted() -> None:
    assert balanced_weights([30, 0, 10]) == (40 / (2 * 30), 0.0, 40 / (2 * 10))
    assert balanced_weights([0, 7]) == (0.0, 1.0)


def test_a_balanced_task_weighs_by_the_rows_of_its_classes() -> None:
    outputs, labels = outputs_of(MULTICLASS, 6), labels_of(MULTICLASS, 6)
    balanced = build_task_loss(msgspec.structs.replace(MULTICLASS, class_weights="balanced"), [6, 2, 1])
    listed = build_task_loss(weighted(MULTICLASS, [9 / 18, 9 / 6, 9 / 3]))
    targets = listed.targets(labels)
    for one, other in zip(
        balanced.loss_and_gradient(outputs, targets), listed.loss_and_gradient(outputs, targets), strict=True
    ):
        assert torch.equal(one, other)


# -- predictions --


def test_binary_predictions_are_probabilities_of_the_positive_class() -> None:
    outputs = torch.tensor([[0.0], [-math.log(3)]])
    predictions = build_task_loss(BINARY).predict(outputs)
    torch.testing.assert_close(predictions, torch.tensor([[0.5], [0.25]]))


def test_multiclass_predictions_are_probabilities_of_each_class() -> None:
    outputs = torch.tensor([[0.0, math.log(2), 0.0]])
    predictions = build_task_loss(MULTICLASS).predict(outputs)
    torch.testing.assert_close(predictions, torch.tensor([[0.25, 0.5, 0.25]]))


def test_regression_predictions_are_the_values() -> None:
    outputs = outputs_of(REGRESSION, 4)
    assert torch.equal(build_task_loss(REGRESSION).predict(outputs), outputs)


@EVERY_TASK
def test_read_only_labels_are_taken(task: Task) -> None:
    labels = np.frombuffer(labels_of(task, 5).tobytes(), np.float32)
    assert len(build_task_loss(task).targets(labels)) == 5


def test_a_task_without_a_path_has_no_custom_loss() -> None:
    assert load_custom_loss(BINARY, ["torch"]) is None


def test_a_custom_loss_needs_the_callers_permission() -> None:
    with pytest.raises(ConfigError, match="allow-list"):
        load_custom_loss(Task(loss="torch.nn:L1Loss"), ())


def test_a_loss_with_parameters_is_refused() -> None:
    with pytest.raises(ConfigError, match="has parameters"):
        load_custom_loss(Task(loss="torch.nn:PReLU"), ["torch"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("strange_networks:Incomplete", "cannot be made without arguments: TypeError"),
        (
            "strange_networks:Forgetful",
            r"does not take outputs \[2, 1\] and targets \[2, 1\]: AssertionError: not today",
        ),
        ("strange_networks:RowByRow", "must give one number that depends on the outputs"),
    ],
)
def test_a_loss_that_is_none_is_refused_before_the_first_round(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_custom_loss(Task(loss=path), ["strange_networks"])
