"""Losses, their gradients in closed form, and predictions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.config.job import Task
from vfedsec.errors import ConfigError
from vfedsec.models.tasks import build_task_loss, load_custom_loss

BINARY, REGRESSION = Task(kind="binary"), Task(kind="regression")
MULTICLASS = Task(kind="multiclass", classes=("a", "b", "c"))
TASKS = [BINARY, MULTICLASS, REGRESSION]
EVERY_TASK = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)


def outputs_of(task: Task, rows: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, len(task.classes) or 1, generator=generator)


def labels_of(task: Task, rows: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if task.kind == "regression":
        return rng.normal(size=rows).astype(np.float32)
    return rng.integers(0, len(task.classes) or 2, rows).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(TASKS), st.integers(1, 9), st.integers(0, 99), st.sampled_from([1.0, 50.0]))
def test_the_closed_form_is_what_autograd_finds(task: Task, rows: int, seed: int, scale: float) -> None:
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
