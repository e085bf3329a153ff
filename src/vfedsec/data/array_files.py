"""Arrays in files: NumPy's `.npz` and `.npy`, and IDX, the format of MNIST and its successors."""

from __future__ import annotations

import gzip
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.origin import Origin

Array = NDArray[Any]
_Read = TypeVar("_Read")

MOST_BYTES = 1 << 33
"""No array file holds more, unpacked; one that claims more is refused before it is read."""

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_NO_IDX = "it does not begin as an IDX file does"
_UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, SyntaxError, TypeError),
    *(zipfile.BadZipFile, zlib.error),
    RuntimeError,  # an encrypted archive, or one packed by an unknown method
    tokenize.TokenError,  # NumPy reads the head of an array with Python's own tokenizer
)


def read_npz(origin: Origin, path: Path) -> Mapping[str, Array]:
    """All arrays of a file by name. Raises `DataError` when it cannot be read, or holds anything but plain arrays."""
    return _read(origin, lambda: _npz(path))


def read_array(origin: Origin, path: Path) -> Array:
    """The array of an IDX or `.npy` file. Raises `DataError` when it cannot be read."""
    return _read(origin, lambda: _npy(path) if path.suffix == ".npy" else _idx(path))


def _read(origin: Origin, read: Callable[[], _Read]) -> _Read:
    try:
        return read()
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0] if str(error) else type(error).__name__
        raise origin.error(f"the file cannot be read: {reason}") from None


def _npz(path: Path) -> dict[str, Array]:
    with zipfile.ZipFile(path) as archive:
        _check_size(sum(member.file_size for member in archive.infolist()), MOST_BYTES)
    with np.load(path, allow_pickle=False) as archive:
        return {name: _array(archive[name], name) for name in archive.files}


def _npy(path: Path) -> Array:
    _check_size(path.stat().st_size, MOST_BYTES)
    with path.open("rb") as stream:
        return _array(np.load(stream, allow_pickle=False), path.name)


def _array(found: object, name: str) -> Array:
    # NumPy gives the bytes of a file in an archive that is no array, and an archive whatever its name ends in.
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{name} is no array")
    return found


def _idx(path: Path) -> Array:
    with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as stream:
        return read_idx(stream)


def read_idx(stream: BinaryIO, most: int = MOST_BYTES) -> Array:
    """The array of an IDX file: two zeros, the type of its cells, the number of axes, the length of each, all cells.
    Raises `ValueError` when it is none, or claims more bytes than the most."""
    kind, axes = _idx_head(stream)
    sides = _unpacked(stream, f">{axes}I")
    expected = math.prod(sides) * kind.itemsize
    _check_size(expected, most)
    data = stream.read(expected + 1)
    if len(data) != expected:
        found = "more" if len(data) > expected else len(data)
        raise ValueError(f"its head promises {expected} bytes of data, and it has {found}")
    return np.frombuffer(data, kind).reshape(sides).astype(kind.newbyteorder("="))


def _idx_head(stream: BinaryIO) -> tuple[np.dtype[Any], int]:
    zeros, kind, axes = _unpacked(stream, ">HBB")
    if zeros or kind not in _IDX_TYPES or not axes:
        raise ValueError(_NO_IDX)
    return np.dtype(_IDX_TYPES[kind]), axes


def _unpacked(stream: BinaryIO, numbers: str) -> tuple[int, ...]:
    data = stream.read(struct.calcsize(numbers))
    if len(data) != struct.calcsize(numbers):
        raise ValueError(_NO_IDX)
    return struct.unpack(numbers, data)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"it claims to hold {size} bytes, and {most} are the most that is read")
