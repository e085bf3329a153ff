"""Bottom models: rows in, embedding out, gradient back."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from vfedsec.config.job import ModelSpec, Training
from vfedsec.errors import ConfigError, LocalProtocolError, RemoteProtocolError
from vfedsec.models.bottom import TorchBottom, build_bottom
from vfedsec.models.optimizers import Sgd
from vfedsec.models.passes import LinearPass, ModulePass, choose_pass
from vfedsec.protocol.interfaces import ABSENT_ROW

TABLE = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
LINEAR = ModelSpec()
MLP = ModelSpec(name="mlp", options={"hidden": [6]})
CNN = ModelSpec(name="cnn", options={"shape": [5, 1, 1]})
EVERY_NETWORK = pytest.mark.parametrize("spec", [LINEAR, MLP, CNN], ids=lambda spec: spec.name)

ROWS = st.lists(st.integers(ABSENT_ROW, len(TABLE) - 1), min_size=1, max_size=20)


def bottom_of(spec: ModelSpec, seed: bytes = b"seed", **training: object) -> TorchBottom:
    return build_bottom(TABLE, 3, spec, seed, Training(**training), replicated=False)


def batch(*rows: int) -> np.ndarray:
    return np.array(rows, dtype=np.int32)


def some_gradient(rows: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)


def read_only(array: np.ndarray) -> np.ndarray:
    """As it comes out of a message: not writable, and aligned to nothing."""
    return np.frombuffer(b"?" * 4 + array.tobytes(), array.dtype, offset=4).reshape(array.shape)


@settings(max_examples=30, deadline=None)
@given(ROWS, st.booleans(), st.integers(1, 4), st.integers(0, 99))
def test_by_hand_and_by_autograd_agree(rows: list[int], bias: bool, width: int, seed: int) -> None:
    by_hand = nn.Linear(5, width, bias)
    by_autograd = nn.Sequential(nn.Linear(5, width, bias))
    by_autograd.load_state_dict({f"0.{n}": p for n, p in by_hand.state_dict().items()})
    gradient = np.random.default_rng(seed).normal(size=(len(rows), width)).astype(np.float32)
    found = []
    for module in (by_hand, by_autograd):
        bottom = TorchBottom(module, TABLE, width, partial(Sgd, learning_rate=0.1))
        found.append((bottom.forward(batch(*rows), training=True), bottom.backward(gradient)))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)


def test_only_a_trainable_linear_layer_goes_by_hand() -> None:
    class Doubled(nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(rows)

    def pass_of(module: nn.Module) -> type:
        bottom = TorchBottom(module, TABLE, 3, partial(Sgd, learning_rate=0.1))
        return type(choose_pass(module, bottom._flat))

    assert pass_of(nn.Linear(5, 3)) is LinearPass
    assert pass_of(Doubled(5, 3)) is ModulePass
    frozen = nn.Linear(5, 3)
    frozen.bias.requires_grad_(False)
    assert pass_of(frozen) is ModulePass


@EVERY_NETWORK
@pytest.mark.parametrize("training", [True, False])
def test_rows_that_are_not_held_are_exact_zeros(spec: ModelSpec, training: bool) -> None:
    embedding = bottom_of(spec).forward(batch(3, -1, 4, -1), training=training)
    held = bottom_of(spec).forward(batch(3, 4), training=training)
    np.testing.assert_allclose(embedding[[0, 2]], held, atol=1e-6)
    assert np.array_equal(embedding[[1, 3]], np.zeros((2, 3)))


@EVERY_NETWORK
def test_gradients_of_absent_rows_are_ignored(spec: ModelSpec) -> None:
    gradient = some_gradient(4)
    padded, dense = bottom_of(spec), bottom_of(spec)
    padded.forward(batch(3, -1, 4, -1), training=True)
    dense.forward(batch(3, 4), training=True)
    expected = dense.backward(gradient[[0, 2]])
    assert np.abs(expected).sum() > 0
    np.testing.assert_allclose(padded.backward(gradient), expected, atol=1e-6)


@EVERY_NETWORK
def test_a_batch_without_a_held_row_is_zero_forth_and_back(spec: ModelSpec) -> None:
    bottom = bottom_of(spec)
    bottom.forward(batch(1, 2), training=True)
    bottom.backward(some_gradient(2))
    assert np.array_equal(bottom.forward(batch(-1, -1), training=True), np.zeros((2, 3)))
    assert np.array_equal(bottom.backward(some_gradient(2)), np.zeros(bottom.size))


@EVERY_NETWORK
def test_a_single_held_row_can_be_trained_on(spec: ModelSpec) -> None:
    bottom = bottom_of(spec)
    bottom.forward(batch(-1, 2), training=True)
    assert np.isfinite(bottom.backward(some_gradient(2))).all()


@EVERY_NETWORK
def test_the_embedding_is_a_fresh_contiguous_float32_array(spec: ModelSpec) -> None:
    bottom, rows = bottom_of(spec), batch(0, 1, 2)
    first = bottom.forward(rows, training=False)
    kept = first.copy()
    first[:] = 7
    second = bottom.forward(rows, training=False)
    assert second.dtype == np.float32
    assert second.flags.c_contiguous
    assert np.array_equal(second, kept)


@EVERY_NETWORK
def test_writing_to_the_embedding_does_not_change_the_gradient(spec: ModelSpec) -> None:
    gradients = []
    for value in (0, 1000):
        bottom = bottom_of(spec)
        bottom.forward(batch(0, 1, 2), training=True)[:] += value
        gradients.append(bottom.backward(some_gradient(3)))
    assert np.array_equal(*gradients)


def test_writing_to_an_embedding_that_autograd_saved_does_not_change_the_gradient() -> None:
    module, gradients = nn.Sequential(nn.Linear(5, 3), nn.Sigmoid()), []
    for value in (0, 1000):
        bottom = TorchBottom(module, TABLE, 3, partial(Sgd, learning_rate=0.1))
        bottom.forward(batch(0, 1, 2), training=True)[:] += value
        gradients.append(bottom.backward(some_gradient(3)))
    assert np.array_equal(*gradients)


@EVERY_NETWORK
def test_each_backward_gives_its_own_array(spec: ModelSpec) -> None:
    bottom = bottom_of(spec)
    bottom.forward(batch(0, 1), training=True)
    first = bottom.backward(some_gradient(2, seed=1))
    kept = first.copy()
    bottom.forward(batch(0, 1), training=True)
    bottom.backward(some_gradient(2, seed=2))
    assert np.array_equal(first, kept)


@EVERY_NETWORK
def test_arrays_cut_out_of_a_message_give_the_same_bits(spec: ModelSpec) -> None:
    found = []
    for pick in (np.array, read_only):
        bottom = bottom_of(spec)
        embedding = bottom.forward(pick(batch(0, 1, 2)), training=True)
        gradient = bottom.backward(pick(some_gradient(3)))
        found.append((embedding.tobytes(), gradient.tobytes()))
    assert found[0] == found[1]


@EVERY_NETWORK
def test_only_training_moves_running_statistics(spec: ModelSpec) -> None:
    bottom = bottom_of(spec)
    state = bottom.dump()
    bottom.forward(batch(0, 1, 2), training=False)
    assert bottom.dump() == state
    bottom.forward(batch(0, 1, 2), training=True)
    assert (bottom.dump() != state) == (spec.name == "cnn")


@EVERY_NETWORK
def test_one_step_of_sgd_is_minus_rate_times_gradient(spec: ModelSpec) -> None:
    bottom = bottom_of(spec, learning_rate=0.5)
    before = bottom._flat.values.clone()
    gradient = np.arange(bottom.size, dtype=np.float32)
    bottom.apply(gradient)
    np.testing.assert_allclose(bottom._flat.values, before.numpy() - 0.5 * gradient, rtol=1e-6)


@EVERY_NETWORK
def test_training_lowers_a_loss(spec: ModelSpec) -> None:
    bottom, rows = bottom_of(spec, learning_rate=0.01), batch(*range(12))
    losses = []
    for _ in range(20):
        embedding = bottom.forward(rows, training=True)
        losses.append(np.square(embedding - 1).mean())
        bottom.apply(bottom.backward(2 * (embedding - 1) / embedding.size))
    assert losses[-1] < losses[0]


@EVERY_NETWORK
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_loaded_model_goes_on_bit_for_bit(spec: ModelSpec, optimizer: str) -> None:
    def step(bottom: TorchBottom) -> bytes:
        bottom.forward(batch(0, 5, -1, 7), training=True)
        bottom.apply(bottom.backward(some_gradient(4)))
        return bottom.dump()

    first = bottom_of(spec, optimizer=optimizer, momentum=0.9)
    second = bottom_of(spec, b"another seed", optimizer=optimizer, momentum=0.9)
    second.load(step(first))
    assert step(first) == step(second)


def test_the_state_of_another_network_is_refused_whole() -> None:
    bottom = bottom_of(LINEAR)
    state = bottom.dump()
    with pytest.raises(RemoteProtocolError):
        bottom.load(bottom_of(MLP).dump())
    assert bottom.dump() == state


def test_the_state_of_another_optimizer_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="optimizer"):
        bottom_of(LINEAR).load(bottom_of(LINEAR, optimizer="adam").dump())


@pytest.mark.parametrize("after", ["nothing", "evaluation", "backward", "forget", "load"])
def test_backward_needs_the_last_forward_to_have_been_for_training(after: str) -> None:
    bottom = bottom_of(LINEAR)
    if after != "nothing":
        bottom.forward(batch(0), training=True)
    match after:
        case "evaluation":
            bottom.forward(batch(0), training=False)
        case "backward":
            bottom.backward(some_gradient(1))
        case "forget":
            bottom.forget()
        case "load":
            bottom.load(bottom.dump())
    with pytest.raises(LocalProtocolError, match="no training forward"):
        bottom.backward(some_gradient(1))


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (3,), (2, 4)])
def test_a_gradient_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    bottom = bottom_of(LINEAR)
    bottom.forward(batch(0, 1), training=True)
    with pytest.raises(RemoteProtocolError, match=r"expected \(2, 3\)"):
        bottom.backward(np.ones(shape, dtype=np.float32))


def test_an_update_of_another_size_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match=r"shape \(1,\), expected \(18,\)"):
        bottom_of(LINEAR).apply(np.ones(1, dtype=np.float32))


@pytest.mark.parametrize("row", [len(TABLE), 2**31 - 1, ABSENT_ROW - 1, -(2**31)])
@pytest.mark.parametrize("others", [(0,), (0, ABSENT_ROW)])
def test_a_row_that_is_not_in_the_table_is_refused(row: int, others: tuple[int, ...]) -> None:
    with pytest.raises(RemoteProtocolError, match=f"row {row}"):
        bottom_of(LINEAR).forward(batch(*others, row), training=True)


def test_size_and_width_are_those_of_the_network() -> None:
    bottom = bottom_of(MLP)
    assert bottom.size == 5 * 6 + 6 + 6 * 3 + 3
    assert bottom.width == 3


def test_a_network_with_statistics_is_not_replicated() -> None:
    with pytest.raises(ConfigError, match=r"running_mean.*replicas"):
        build_bottom(TABLE, 3, CNN, b"seed", Training(), replicated=True)


@pytest.mark.parametrize("spec", [LINEAR, MLP], ids=lambda spec: spec.name)
def test_replicas_that_apply_the_same_updates_stay_identical(spec: ModelSpec) -> None:
    replicas = [
        build_bottom(table, 3, spec, b"seed", Training(optimizer="adam"), replicated=True)
        for table in (TABLE, TABLE[:4].copy())
    ]
    for seed in range(5):
        update = np.random.default_rng(seed).normal(size=replicas[0].size).astype(np.float32)
        for replica in replicas:
            replica.forward(batch(0, 1), training=True)
            replica.backward(some_gradient(2))
            replica.apply(update)
    assert replicas[0].dump() == replicas[1].dump()


def test_features_may_be_a_tensor_or_a_read_only_array() -> None:
    tables = (TABLE, read_only(TABLE), torch.from_numpy(TABLE))
    embeddings = [
        build_bottom(table, 3, LINEAR, b"seed", Training(), False).forward(batch(1), training=False) for table in tables
    ]
    assert np.array_equal(embeddings[0], embeddings[1])
    assert np.array_equal(embeddings[0], embeddings[2])


def test_allowed_packages_reach_the_registry() -> None:
    spec = ModelSpec(name="torch.nn:Linear")
    with pytest.raises(ConfigError, match="allow-list"):
        build_bottom(TABLE, 3, spec, b"seed", Training(), False)
    assert build_bottom(TABLE, 3, spec, b"seed", Training(), False, ["torch"]).size == 18
