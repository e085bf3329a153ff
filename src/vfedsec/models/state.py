"""Named tensors as bytes and back, without pickle.

The bytes are msgpack: a version and, for each name, its type, its shape and its raw content.
Loading is strict: the state must name exactly the tensors it is loaded into, each with its type
and shape, and nothing is written before all of them fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import torch
from torch import Tensor

from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.messages import UNREADABLE

VERSION = 1


class _Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    content: bytes


class _State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    tensors: dict[str, _Entry]


def dump_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """The tensors and their names as bytes."""
    entries = {name: _entry(tensor) for name, tensor in tensors.items()}
    return msgspec.msgpack.encode(_State(VERSION, entries))


def load_tensors(state: bytes, tensors: Mapping[str, Tensor]) -> None:
    """Write a state that `dump_tensors` gave into these tensors, all of it or nothing.

    Raises:
        RemoteProtocolError: The state is not one, or is that of other tensors.
    """
    entries = _decode(state)
    if entries.keys() != tensors.keys():
        unknown, missing = sorted(entries.keys() - tensors.keys()), tensors.keys() - entries.keys()
        raise RemoteProtocolError(
            f"a model state must name the tensors of its model: unknown {unknown}, missing {sorted(missing)}"
        )
    for name, tensor in tensors.items():
        _check_fits(name, entries[name], tensor)
    contents = {name: _content(entries[name], tensor) for name, tensor in tensors.items()}
    for name, content in contents.items():
        if content.is_floating_point() and not torch.isfinite(content).all():
            raise RemoteProtocolError(f"tensor {name!r} of a model state is not finite")
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(contents[name])


def _entry(tensor: Tensor) -> _Entry:
    content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return _Entry(_type_name(tensor), tuple(tensor.shape), content)


def _type_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _decode(state: bytes) -> dict[str, _Entry]:
    try:
        decoded = msgspec.msgpack.decode(state, type=_State)
    except UNREADABLE as error:
        raise RemoteProtocolError(f"a model state does not decode: {error}") from None
    if decoded.version != VERSION:
        raise RemoteProtocolError(f"a model state has version {decoded.version}, expected {VERSION}")
    return decoded.tensors


def _check_fits(name: str, entry: _Entry, tensor: Tensor) -> None:
    expected = (_type_name(tensor), tuple(tensor.shape), tensor.numel() * tensor.element_size())
    found = (entry.dtype, entry.shape, len(entry.content))
    if found != expected:
        raise RemoteProtocolError(
            f"tensor {name!r} of a model state has (type, shape, bytes) {found}, expected {expected}"
        )


def _content(entry: _Entry, tensor: Tensor) -> Tensor:
    if not math.prod(entry.shape):
        return torch.empty_like(tensor)
    # A bytearray, since torch warns about memory that it may not write to.
    return torch.frombuffer(bytearray(entry.content), dtype=tensor.dtype).view(entry.shape)
