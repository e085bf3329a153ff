"""The top model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from vfedsec.config.job import Active, Fusion, Group, Job, ModelSpec, Task, Top, Training
from vfedsec.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from vfedsec.models.top import TorchTop

SLICES = [slice(0, 3), slice(3, 5)]
BATCH, WIDTH, CLASSES = 8, 5, 4
LINEAR, MLP = ModelSpec(), ModelSpec(name="mlp", options={"hidden": [6]})
CNN = ModelSpec(name="cnn", options={"shape": [WIDTH, 1, 1]})
KINDS = ["binary", "multiclass", "regression"]
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def job_of(
    kind: str = "binary", loss: str = "", fusion: str = "concat", class_weights: Any = None, **parts: Any
) -> Job:
    classes = tuple("abcd") if kind == "multiclass" else ()
    return Job(
        name="job",
        active=Active(party="active", columns=("a",)),
        groups=(
            Group(name="one", parties=("p",), columns=("x",), width=3),
            Group(name="two", parties=("q",), columns=("y",), width=2 if fusion == "concat" else 3),
        ),
        task=Task(kind=kind, classes=classes, loss=loss, class_weights=class_weights),
        fusion=Fusion(kind=fusion),
        **parts,
    )


def top_of(seed: bytes = b"seed", allowed: tuple[str, ...] = (), **job: Any) -> TorchTop:
    return TorchTop(job_of(**job), SLICES, seed, allowed)


def embedding_of(seed: int = 0, rows: int = BATCH) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, WIDTH)).astype(np.float32)


def labels_of(kind: str, seed: int = 0, rows: int = BATCH) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "regression":
        return rng.normal(size=rows).astype(np.float32)
    return rng.integers(0, CLASSES if kind == "multiclass" else 2, rows).astype(np.float32)


def read_only(array: np.ndarray) -> np.ndarray:
    """As it comes out of a message: not writable, and aligned to nothing."""
    return np.frombuffer(b"?" * 4 + array.tobytes(), array.dtype, offset=4).reshape(array.shape)


class Reference:
    """The same step written plainly with what torch has."""

    def __init__(self, top: TorchTop, job: Job) -> None:
        self.job = job
        self.model = nn.Linear(WIDTH, job.output_width)
        self.norms = [nn.BatchNorm1d(3), nn.BatchNorm1d(2)]
        values = top._flat.state()
        with torch.no_grad():
            self.model.weight.copy_(values["parameter.model.weight"])
            self.model.bias.copy_(values["parameter.model.bias"])
        parameters = [p for m in (*self.norms, self.model) for p in m.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=job.training.learning_rate)

    def train(
        self, embedding: np.ndarray, present: list[bool], labels: np.ndarray, valid: int
    ) -> tuple[float, np.ndarray]:
        rows = torch.from_numpy(embedding.copy()).requires_grad_()
        parts = [
            self._part(norm, rows[:valid, columns]) if there else torch.zeros(valid, norm_width)
            for norm, columns, there, norm_width in zip(self.norms, SLICES, present, (3, 2), strict=True)
        ]
        joint = torch.cat(parts, 1)
        if self.job.top.activation == "relu":
            joint = joint.relu()
        loss = self._loss(self.model(joint), torch.from_numpy(labels[:valid]))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        gradient = torch.zeros_like(rows) if rows.grad is None else rows.grad
        return loss.item(), gradient.numpy()

    def _part(self, norm: nn.Module, rows: torch.Tensor) -> torch.Tensor:
        return norm(rows) if self.job.top.batch_norm else rows

    def _loss(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weights = self.job.task.class_weights
        by_class = None if weights is None else torch.tensor(weights)
        if self.job.task.kind == "multiclass":
            return functional.cross_entropy(outputs, labels.long(), by_class, reduction="sum") / len(labels)
        if self.job.task.kind == "binary":
            by_row = None if by_class is None else by_class[labels.long()]
            return functional.binary_cross_entropy_with_logits(outputs.squeeze(1), labels, by_row)
        return functional.mse_loss(outputs.squeeze(1), labels)


WEIGHTS = {"binary": (0.25, 3.0), "multiclass": (0.5, 2.0, 0.0, 4.0), "regression": None}


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.booleans(),
    st.builds(Top, batch_norm=st.booleans(), activation=st.sampled_from(["relu", "none"])),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(2, BATCH),
    st.booleans(),
)
def test_training_is_what_plain_torch_does(
    kind: str, is_weighted: bool, top: Top, present: tuple[bool, bool], valid: int, by_autograd: bool
) -> None:
    weights = WEIGHTS[kind] if is_weighted else None
    job = job_of(kind, top=top, training=Training(learning_rate=0.1), class_weights=weights)
    ours = TorchTop(job, SLICES, b"seed")
    if by_autograd:
        ours._closed_form = None
    reference = Reference(ours, job)
    # The second step sees whether the first one's parameters were right, and that one's scales.
    for seed in range(3):
        step = embedding_of(seed), list(present), labels_of(kind, seed), valid
        loss, gradient = ours.train(*step)
        expected_loss, expected_gradient = reference.train(*step)
        assert loss == pytest.approx(expected_loss, rel=1e-3, abs=1e-5)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-3, atol=1e-4)
    state = ours._flat.state()
    for norm, columns in zip(reference.norms, SLICES, strict=True):
        if top.batch_norm:
            for name in ("running_mean", "running_var"):
                found = state[f"buffer.norm.{name}"][columns]
                torch.testing.assert_close(found, getattr(norm, name))


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("activation", ["relu", "none"])
def test_missing_slices_and_rows_get_exact_zeros_and_do_not_matter(
    model: ModelSpec, batch_norm: bool, activation: str
) -> None:
    found = []
    for filler in (0, 9, np.nan):
        embedding = embedding_of()
        embedding[:, SLICES[1]] = embedding[6:] = filler
        top = top_of(top=Top(model=model, batch_norm=batch_norm, activation=activation))
        loss, gradient = top.train(embedding, [True, False], labels_of("binary"), 6)
        assert (gradient[:, SLICES[1]] == 0).all()
        assert (gradient[6:] == 0).all()
        assert np.abs(gradient[:6, SLICES[0]]).sum() > 0
        found.append((loss, gradient.tobytes(), top.dump()))
    assert found[0][2] == found[1][2] == found[2][2]
    assert found[0][0] == found[1][0] == found[2][0]


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
def test_a_round_without_any_slice_trains_without_a_gradient_for_the_parties(
    model: ModelSpec,
) -> None:
    top = top_of(top=Top(model=model))
    loss, gradient = top.train(embedding_of(), [False, False], labels_of("binary"), BATCH)
    assert np.isfinite(loss)
    assert np.array_equal(gradient, np.zeros((BATCH, WIDTH)))


@EVERY_KIND
@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("valid", [1, 5, BATCH])
def test_the_gradient_is_contiguous_float32_of_the_whole_batch(kind: str, model: ModelSpec, valid: int) -> None:
    top = top_of(kind=kind, top=Top(model=model))
    loss, gradient = top.train(embedding_of(), [True, True], labels_of(kind), valid)
    assert isinstance(loss, float)
    assert gradient.shape == (BATCH, WIDTH)
    assert gradient.dtype == np.float32
    assert gradient.flags.c_contiguous


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
def test_training_leaves_the_embedding_and_older_gradients_alone(model: ModelSpec) -> None:
    for batch_norm in (True, False):
        top = top_of(top=Top(model=model, batch_norm=batch_norm))
        embedding, labels = embedding_of(), labels_of("binary")
        _, first = top.train(embedding, [True, True], labels, BATCH)
        kept = first.copy()
        top.train(embedding, [True, True], labels, BATCH)
        assert np.array_equal(embedding, embedding_of())
        assert np.array_equal(first, kept)


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("batch_norm", [True, False])
def test_arrays_cut_out_of_a_message_give_the_same_bits(model: ModelSpec, batch_norm: bool) -> None:
    found = []
    for pick in (np.array, read_only):
        top = top_of(top=Top(model=model, batch_norm=batch_norm, activation="none"))
        embedding, labels = pick(embedding_of(rows=256)), pick(labels_of("binary", rows=256))
        _, gradient = top.train(embedding, [True, True], labels, 256)
        predictions = top.predict(embedding, [True, True])
        found.append((gradient.tobytes(), predictions.tobytes(), top.dump()))
    assert found[0] == found[1]


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("valid", [1, 5, BATCH])
def test_a_row_of_a_class_without_weight_does_not_move_the_model(model: ModelSpec, valid: int) -> None:
    top = top_of(top=Top(model=model), class_weights=(0.0, 1.0))
    before = top._flat.values.clone()
    loss, gradient = top.train(embedding_of(), [True, True], np.zeros(BATCH, np.float32), valid)
    assert loss == 0
    assert not gradient.any()
    assert torch.equal(before, top._flat.values)


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("valid", [1, 5, BATCH])
def test_a_balanced_top_model_trains_as_with_these_weights_in_the_job(model: ModelSpec, valid: int) -> None:
    balanced, listed = (top_of(top=Top(model=model), class_weights=w) for w in ("balanced", (10 / 16, 10 / 4)))
    balanced.balance([8, 2])
    step = embedding_of(), [True, False], labels_of("binary"), valid
    (loss, gradient), (same_loss, same_gradient) = balanced.train(*step), listed.train(*step)
    assert loss == same_loss
    assert np.array_equal(gradient, same_gradient)
    assert balanced.dump() == listed.dump()


def test_a_top_model_that_is_to_balance_does_not_train_before_it_can() -> None:
    top = top_of(class_weights="balanced")
    top.predict(embedding_of(), [True, True])
    with pytest.raises(LocalProtocolError, match="before it knows how many rows each has"):
        top.train(embedding_of(), [True, True], labels_of("binary"), BATCH)


@pytest.mark.parametrize("weights", [None, (1.0, 2.0)])
def test_a_job_that_does_not_balance_is_not_balanced(weights: tuple[float, float] | None) -> None:
    with pytest.raises(LocalProtocolError, match="that the job does not balance"):
        top_of(class_weights=weights).balance([1, 2])


@EVERY_KIND
@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_lowers_the_loss(kind: str, model: ModelSpec, optimizer: str) -> None:
    training = Training(optimizer=optimizer, learning_rate=0.05, momentum=0.5)
    top = top_of(kind=kind, top=Top(model=model), training=training)
    step = embedding_of(), [True, True], labels_of(kind), BATCH
    losses = [top.train(*step)[0] for _ in range(20)]
    assert losses[-1] < losses[0]


@EVERY_KIND
def test_predictions_have_a_column_an_output(kind: str) -> None:
    predictions = top_of(kind=kind).predict(embedding_of(), [True, True])
    assert predictions.shape == (BATCH, CLASSES if kind == "multiclass" else 1)
    assert predictions.dtype == np.float32
    if kind == "multiclass":
        np.testing.assert_allclose(predictions.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
def test_a_prediction_does_not_depend_on_the_other_rows(model: ModelSpec) -> None:
    top = top_of(top=Top(model=model))
    top.train(embedding_of(), [True, True], labels_of("binary"), BATCH)
    whole = top.predict(embedding_of(), [True, True])
    np.testing.assert_allclose(top.predict(embedding_of()[:1], [True, True]), whole[:1], rtol=1e-5)


def test_predicting_changes_nothing() -> None:
    for model in (LINEAR, MLP):
        top = top_of(top=Top(model=model))
        state = top.dump()
        top.predict(embedding_of(), [True, False])
        assert top.dump() == state


@pytest.mark.parametrize("batch_norm", [True, False])
def test_predictions_do_not_depend_on_missing_slices(batch_norm: bool) -> None:
    top = top_of(top=Top(batch_norm=batch_norm))
    other = embedding_of()
    other[:, SLICES[1]] = np.nan
    found = [top.predict(embedding, [True, False]) for embedding in (embedding_of(), other)]
    assert np.array_equal(*found)


@pytest.mark.parametrize("model", [LINEAR, MLP, CNN], ids=lambda spec: spec.name)
def test_a_single_row_is_trained_on_with_running_statistics(model: ModelSpec) -> None:
    top = top_of(top=Top(model=model))
    before = {name: buffer.clone() for name, buffer in top._flat.buffers.items()}
    loss, gradient = top.train(embedding_of(), [True, True], labels_of("binary"), 1)
    assert np.isfinite(loss)
    assert np.abs(gradient[0]).sum() > 0
    assert all(torch.equal(before[name], buffer) for name, buffer in top._flat.buffers.items())


def test_training_goes_on_with_batch_statistics_after_a_single_row_or_a_prediction() -> None:
    labels, present = labels_of("binary"), [True, True]
    for model in (LINEAR, MLP):
        top = top_of(top=Top(model=model))
        before = top._flat.buffers["norm.running_mean"].clone()
        top.train(embedding_of(), present, labels, 1)
        top.predict(embedding_of(), present)
        top.train(embedding_of(), present, labels, BATCH)
        assert not torch.equal(top._flat.buffers["norm.running_mean"], before)


@EVERY_KIND
@pytest.mark.parametrize("model", [LINEAR, MLP], ids=lambda spec: spec.name)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_loaded_model_goes_on_bit_for_bit(kind: str, model: ModelSpec, optimizer: str) -> None:
    job = {
        "kind": kind,
        "top": Top(model=model),
        "training": Training(optimizer=optimizer, momentum=0.9),
    }
    step = embedding_of(), [True, False], labels_of(kind), 7
    first, second = top_of(**job), top_of(b"another seed", **job)
    first.train(*step)
    second.load(first.dump())
    assert first.train(*step)[0] == second.train(*step)[0]
    assert first.dump() == second.dump()


def test_the_state_of_another_top_model_is_refused() -> None:
    with pytest.raises(RemoteProtocolError):
        top_of().load(top_of(kind="multiclass").dump())


def test_weights_follow_from_the_seed() -> None:
    assert top_of(b"one").dump() == top_of(b"one").dump() != top_of(b"two").dump()


def test_with_sum_all_groups_share_one_slice() -> None:
    top = TorchTop(job_of(fusion="sum"), [slice(0, 3)], b"seed")
    embedding = embedding_of()[:, :3]
    _, gradient = top.train(embedding, [True], labels_of("binary"), BATCH)
    assert gradient.shape == (BATCH, 3)
    _, gradient = top.train(embedding, [False], labels_of("binary"), BATCH)
    assert not gradient.any()


def test_a_custom_loss_takes_the_place_of_the_built_in_one() -> None:
    embedding, labels = embedding_of(), labels_of("regression")
    top = top_of(kind="regression", loss="torch.nn:L1Loss", allowed=("torch",))
    top.train(embedding, [True, True], labels, BATCH)  # Makes running statistics worth using.
    top._head.norm = None
    predictions = top.predict(embedding, [True, True])
    loss, _ = top.train(embedding, [True, True], labels, BATCH)
    assert loss == pytest.approx(np.abs(predictions[:, 0] - labels).mean(), rel=1e-5)


def test_import_paths_need_the_callers_permission() -> None:
    for job in ({"loss": "torch.nn:L1Loss"}, {"top": Top(model=ModelSpec(name="torch.nn:Linear"))}):
        with pytest.raises(ConfigError, match="allow-list"):
            top_of(**job)
        top_of(allowed=("torch",), **job)


@pytest.mark.parametrize(("valid", "labels"), [(0, BATCH), (BATCH + 1, BATCH + 1), (BATCH, 1)])
def test_a_number_of_valid_rows_that_does_not_fit_is_refused(valid: int, labels: int) -> None:
    with pytest.raises(LocalProtocolError, match="cannot train on"):
        top_of().train(embedding_of(), [True, True], labels_of("binary", rows=labels), valid)


def test_presence_of_another_number_of_slices_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="2 slices was told about 1"):
        top_of().train(embedding_of(), [True], labels_of("binary"), BATCH)


def test_labels_past_valid_are_not_looked_at() -> None:
    labels = labels_of("binary")
    labels[5:] = np.nan
    loss, _ = top_of().train(embedding_of(), [True, True], labels, 5)
    assert np.isfinite(loss)
