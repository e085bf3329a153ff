"""Data sets for tests: the published ones where this machine has them, and small ones of the same form."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from vfedsec.data.datasets import KNOWN, ImageDataset, TableDataset, load
from vfedsec.data.datasets.catalogue import (
    ADULT,
    BANK,
    EMNIST,
    FASHION_MNIST,
    KnownColumn,
    KnownFile,
    KnownImages,
    KnownTable,
)
from vfedsec.data.datasets.finding import DATA_VARIABLE, find

SMALL_BANK = b'"age";"job";"y"\n58;"management";"no"\n44;"technician";"yes"\n33;"management";"no"\n'
SMALL_ADULT = (
    b"39, State-gov, Male, <=50K\n50, ?, Female, >50K\n\n",
    b"|1x3 Cross validator\n25, Private, Male, <=50K.\n\n",
)
SIDE = 4


def published(key: str) -> TableDataset | ImageDataset:
    """A whole data set, where its files are; the test is skipped where they are not."""
    if find(KNOWN[key], None) is None:
        pytest.skip(f"the files of {KNOWN[key].name} are not here; {DATA_VARIABLE} can name a folder with them")
    return _loaded(key)


@cache
def _loaded(key: str) -> TableDataset | ImageDataset:
    return load(key)


def write(folder: Path, contents: Mapping[str, bytes]) -> tuple[KnownFile, ...]:
    """Write files, and give what a catalogue would know of them."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return tuple(
        KnownFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
    )


def small_bank(folder: Path, content: bytes = SMALL_BANK) -> KnownTable:
    """Three rows of two columns in the form of Bank Marketing."""
    return replace(
        BANK,
        files=write(folder, {"bank-full.csv": content}),
        rows=3,
        columns={"age": KnownColumn(), "job": KnownColumn(2)},
        openml_columns={"age": "V1", "job": "V2"},
    )


def small_adult(folder: Path, contents: tuple[bytes, bytes] = SMALL_ADULT) -> KnownTable:
    """Two training rows and a test row of three columns in the form of Adult."""
    return replace(
        ADULT,
        files=write(folder, dict(zip(("adult.data", "adult.test"), contents, strict=True))),
        rows=3,
        train_rows=2,
        columns={"age": KnownColumn(), "workclass": KnownColumn(2, has_missing=True), "gender": KnownColumn(2)},
        openml_columns={"age": "age", "workclass": "workclass", "gender": "sex"},
    )


def drawn(rows: int) -> NDArray[np.uint8]:
    """So many images, all different."""
    return np.arange(rows * SIDE * SIDE, dtype=np.uint8).reshape(rows, SIDE, SIDE)


def emnist_arrays() -> dict[str, NDArray[np.generic]]:
    """Two training images and a test image of the classes 7 and L."""
    return {
        "train_x": drawn(3)[:2],
        "train_y": np.array([0, 1], np.uint8),
        "test_x": drawn(3)[2:],
        "test_y": np.array([1], np.uint8),
        "mapping": np.array(["7", "L"]),
    }


def small_emnist(folder: Path, arrays: Mapping[str, NDArray[np.generic]]) -> KnownImages:
    """The arrays as a file in the form of EMNIST's."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return known_emnist(write(folder, {"emnist47.npz": stream.getvalue()}))


def known_emnist(files: tuple[KnownFile, ...]) -> KnownImages:
    """What a catalogue would know of three small images."""
    return replace(EMNIST, files=files, rows=3, train_rows=2, classes=("7", "L"), side=SIDE, openml_rows=3)


def idx(array: NDArray[np.uint8]) -> bytes:
    """An IDX file, packed."""
    head = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4) for length in array.shape)
    return gzip.compress(head + array.tobytes())


def small_fashion_mnist(folder: Path, contents: Mapping[str, bytes] | None = None) -> KnownImages:
    """Two training images and a test image in the form of Fashion-MNIST; some files can be given."""
    arrays = (drawn(3)[:2], np.array([0, 1], np.uint8), drawn(3)[2:], np.array([1], np.uint8))
    files = {file.name: idx(array) for file, array in zip(FASHION_MNIST.files, arrays, strict=True)}
    known = write(folder, files | dict(contents or {}))
    return replace(FASHION_MNIST, files=known, rows=3, train_rows=2, classes=("Coat", "Bag"), side=SIDE, openml_rows=3)
