"""Data sets from OpenML, fetched and kept by scikit-learn in its data home.

Every time it reads a file, scikit-learn compares the file's MD5 digest with the one that OpenML gives along with it.
That finds damage; it does not find that OpenML gives another data set, so what comes is also held against what is
known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.cells import number_text
from vfedsec.data.datasets.catalogue import KnownDataset, KnownImages, KnownTable
from vfedsec.data.datasets.dataset import Images
from vfedsec.data.datasets.finding import DATA_VARIABLE
from vfedsec.data.datasets.images import ClassNumbers
from vfedsec.data.datasets.tables import MISSING, Rows
from vfedsec.errors import DataError


@dataclass(frozen=True)
class Fetch:
    """A download under way, for somebody to watch."""

    name: str
    """Of the data set."""
    folder: Path
    """It grows while files arrive; OpenML does not tell by how much it will."""


Watch = Callable[[Fetch], AbstractContextManager[object]]
"""Enters a context for the time of a download."""


def unwatched(_fetch: Fetch) -> AbstractContextManager[object]:
    """Watch nothing."""
    return nullcontext()


def fetch_rows(known: KnownTable, sought: Sequence[Path], watch: Watch) -> Rows:
    """The rows of a table, which was sought in these folders before.

    Raises `DataError` when they cannot be had or have other columns.
    """
    bunch = _fetch(known, sought, watch)
    names = [str(name) for name in bunch.feature_names]
    absent = [name for name in known.openml_columns.values() if name not in names]
    if absent:
        raise _other(known, f"no column {absent[0]!r}")
    columns = [
        _texts(bunch.data[:, names.index(name)], bunch.categories.get(name)) for name in known.openml_columns.values()
    ]
    labels = [known.openml_classes.get(str(label), str(label)) for label in bunch.target]
    return [list(row) for row in zip(*columns, labels, strict=True)]


def fetch_images(known: KnownImages, sought: Sequence[Path], watch: Watch) -> tuple[Images, ClassNumbers]:
    """Images as they come and the numbers of their classes; they were sought in these folders before.

    Raises `DataError` when they cannot be had, or are not images of the known size.
    """
    bunch = _fetch(known, sought, watch)
    pixels = np.asarray(bunch.data)
    width = known.side**2
    if pixels.ndim != 2 or pixels.shape[1] != width or not ((pixels >= 0) & (pixels <= 255)).all():
        raise _other(known, f"an array {pixels.shape} instead of {width} pixels a row, each from 0 to 255")
    try:
        numbers = np.array([float(label) for label in bunch.target]).astype(np.int64)
    except ValueError:
        raise _other(known, "labels that are no numbers") from None
    return pixels.astype(np.uint8).reshape(-1, known.side, known.side), numbers


def _fetch(known: KnownDataset, sought: Sequence[Path], watch: Watch) -> Any:
    try:
        from sklearn.datasets import get_data_home

        fetch = Fetch(known.name, Path(get_data_home()) / "openml")
    except ImportError:
        reason = "scikit-learn is not installed (pip install 'vfedsec[experiments]')"
        raise _unavailable(known, sought, reason) from None
    except OSError as error:
        raise _unavailable(known, sought, f"no folder for downloads: {error}") from None
    with watch(fetch):
        try:
            return _through_scikit_learn(known.openml)
        except Exception as error:  # whatever the network, the disk and the parser of an ARFF file may raise
            told = str(error).strip().splitlines()
            raise _unavailable(known, sought, told[0] if told else type(error).__name__) from None


def _through_scikit_learn(data_id: int) -> Any:
    from sklearn.datasets import fetch_openml

    with warnings.catch_warnings():
        # It warns of every further attempt; the error of the last one tells enough.
        warnings.simplefilter("ignore")
        # The parser that needs no pandas.
        return fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff")


def _unavailable(known: KnownDataset, sought: Sequence[Path], reason: str) -> DataError:
    files = ", ".join(file.name for file in known.files)
    where = ", ".join(map(str, sought)) or "no folder, as none was named"
    return DataError(
        f"{known.name} is not to be had: looked for {files} in {where}, then for OpenML's data set {known.openml}: "
        f"{reason}; name a folder with the files by --data-dir or {DATA_VARIABLE}"
    )


def _other(known: KnownDataset, found: str) -> DataError:
    return DataError(f"OpenML's data set {known.openml}: expected {known.name} as it was known, found {found}")


def _texts(values: NDArray[Any], categories: list[str] | None) -> list[str]:
    """A column as it stands in the published files."""
    if categories is None:
        return [MISSING if np.isnan(value) else number_text(float(value)) for value in values]
    return [MISSING if np.isnan(value) else categories[int(value)].strip() for value in values]
