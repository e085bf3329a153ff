"""EMNIST and Fashion-MNIST from files: arrays of numpy, and the IDX format of MNIST."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.array_files import read_idx
from vfedsec.data.datasets.catalogue import KnownImages
from vfedsec.data.datasets.dataset import Images
from vfedsec.errors import DataError

ClassNumbers = NDArray[np.int64]

_DAMAGE = (ValueError, KeyError, OSError, EOFError, zlib.error, zipfile.BadZipFile)


def read_images(
    known: KnownImages, paths: Sequence[Path], contents: Sequence[bytes]
) -> tuple[Images, ClassNumbers, int]:
    """Images and the numbers of their classes, the training part first, and how many that has.

    The contents are those of published files, so no more can come out of them than is known. Raises `DataError` where
    one is not of the known form.
    """
    try:
        images, numbers = zip(*_READERS[known.key](known, contents), strict=True)
    except _DAMAGE as error:
        names = ", ".join(map(str, paths))
        raise DataError(f"{names}: expected images as published, found: {error}") from None
    return np.concatenate(images), np.concatenate(numbers).astype(np.int64), len(numbers[0])


def upright(known: KnownImages, images: Images, numbers: ClassNumbers) -> Images:
    """The images as people draw them.

    The files that EMNIST was first published in hold every image with rows and columns swapped, and so may a copy of
    them, but nothing in it tells. Slices of rows would be slices of columns then, so the images themselves are asked.
    """
    if not known.upright_by:
        return images
    mean = images[numbers == known.classes.index(known.upright_by)].mean(axis=0)
    half = known.side // 2
    top_right, bottom_left = mean[:half, half:].sum(), mean[half:, :half].sum()
    return images if top_right > bottom_left else np.ascontiguousarray(images.swapaxes(1, 2))


_Parts = list[tuple[Images, NDArray[np.uint8]]]


def _read_emnist(known: KnownImages, contents: Sequence[bytes]) -> _Parts:
    with np.load(io.BytesIO(contents[0]), allow_pickle=False) as arrays:
        mapping = arrays["mapping"]
        if mapping.tolist() != list(known.classes):
            raise ValueError(f"a mapping of {mapping.shape} to other characters than the {len(known.classes)} known")
        return [_part(known, arrays[f"{part}_x"], arrays[f"{part}_y"]) for part in ("train", "test")]


def _read_fashion_mnist(known: KnownImages, contents: Sequence[bytes]) -> _Parts:
    most = known.rows * known.side**2
    unpacked = [gzip.GzipFile(fileobj=io.BytesIO(content)) for content in contents]
    train_images, train_labels, test_images, test_labels = (read_idx(cast(BinaryIO, one), most) for one in unpacked)
    return [_part(known, train_images, train_labels), _part(known, test_images, test_labels)]


def _part(known: KnownImages, images: NDArray[Any], labels: NDArray[Any]) -> tuple[Images, NDArray[np.uint8]]:
    expected = (len(labels), known.side, known.side)
    if images.shape != expected or images.dtype != np.uint8 or labels.shape != expected[:1] or labels.dtype != np.uint8:
        found = f"{images.dtype} {images.shape} and {labels.dtype} {labels.shape}"
        raise ValueError(f"{found} instead of bytes {expected} and {expected[:1]}")
    return images, labels


_READERS: dict[str, Callable[[KnownImages, Sequence[bytes]], _Parts]] = {
    "emnist": _read_emnist,
    "fashion-mnist": _read_fashion_mnist,
}
