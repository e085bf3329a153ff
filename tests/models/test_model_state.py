"""Named tensors as bytes."""

from __future__ import annotations

import math

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vfedsec.errors import RemoteProtocolError
from vfedsec.models.state import dump_tensors, load_tensors

DTYPES = [torch.float32, torch.int64, torch.uint32, torch.bool, torch.bfloat16]


def some_tensors() -> dict[str, Tensor]:
    return {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(3)}


def zeros_like(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 3), max_size=3), st.integers(0, 99))
def test_load_gives_back_what_was_dumped(dtype: torch.dtype, shape: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    tensors = {"x": torch.randint(0, 2, shape, generator=generator).to(dtype)}
    loaded = zeros_like(tensors)
    load_tensors(dump_tensors(tensors), loaded)
    assert torch.equal(loaded["x"], tensors["x"])


def test_a_view_is_dumped_as_its_own_numbers_only() -> None:
    tensors = {"x": torch.arange(6.0).reshape(2, 3).t()[1:]}
    loaded = {"x": torch.zeros(2, 2)}
    load_tensors(dump_tensors(tensors), loaded)
    assert torch.equal(loaded["x"], tensors["x"])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_states_are_refused_or_fit_whole(data: st.DataObject) -> None:
    state = bytearray(dump_tensors(some_tensors()))
    position = data.draw(st.integers(0, len(state) - 1))
    state[position] ^= data.draw(st.integers(1, 255))
    load_or_refuse(bytes(state))


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60))
def test_a_state_fed_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        load_tensors(garbage, some_tensors())


def load_or_refuse(state: bytes) -> None:
    """Only `RemoteProtocolError` may come out, and then nothing was written."""
    tensors = zeros_like(some_tensors())
    try:
        load_tensors(state, tensors)
    except RemoteProtocolError:
        assert not any(tensor.any() for tensor in tensors.values())


def test_a_cut_state_is_refused() -> None:
    state = dump_tensors(some_tensors())
    for length in range(len(state)):
        with pytest.raises(RemoteProtocolError):
            load_tensors(state[:length], some_tensors())


@pytest.mark.parametrize(
    "other",
    [
        {"a": torch.ones(2, 3)},
        {"a": torch.ones(2, 3), "b": torch.tensor(3), "c": torch.ones(1)},
        {"a": torch.ones(3, 2), "b": torch.tensor(3)},
        {"a": torch.ones(2, 3), "b": torch.tensor(3.0)},
        {"a": torch.ones(2, 3), "b": torch.tensor([3])},
    ],
    ids=["missing", "unknown", "shape", "type", "rank"],
)
def test_a_state_of_other_tensors_is_refused_whole(other: dict[str, Tensor]) -> None:
    tensors = zeros_like(some_tensors())
    with pytest.raises(RemoteProtocolError):
        load_tensors(dump_tensors(other), tensors)
    assert not any(tensor.any() for tensor in tensors.values())


def test_another_version_is_refused() -> None:
    state = msgspec.msgpack.decode(dump_tensors(some_tensors()))
    state["version"] = 2
    with pytest.raises(RemoteProtocolError, match="version 2, expected 1"):
        load_tensors(msgspec.msgpack.encode(state), some_tensors())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_state_that_is_not_finite_is_refused_and_nothing_written(value: float) -> None:
    kept = {"a": torch.zeros(2), "b": torch.zeros(2)}
    state = dump_tensors({"a": torch.ones(2), "b": torch.tensor([0.0, value])})
    with pytest.raises(RemoteProtocolError, match="tensor 'b' of a model state is not finite"):
        load_tensors(state, kept)
    assert not kept["a"].any()
