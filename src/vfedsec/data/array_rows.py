"""Rows whose columns are arrays: the counterpart of `DuckRows` for files of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vfedsec.config.party import ColumnKind
from vfedsec.data.array_files import Array
from vfedsec.data.cells import Column, Texts
from vfedsec.data.origin import Origin
from vfedsec.data.values import ValueReader


class ArrayRows:
    """The rows of arrays by name; the first axis of each is the row."""

    def __init__(self, origin: Origin, arrays: Mapping[str, Array]) -> None:
        """Raises `DataError` when there is no array, or one without rows."""
        self._origin = origin
        self._arrays = arrays
        self._missing: frozenset[str] = frozenset()
        self.names = list(arrays)
        if not arrays:
            raise origin.error("the file holds no array")
        for name, array in arrays.items():
            if not array.ndim:
                raise origin.error("the array is a single value, not one a row", column=name)

    def read(self, wanted: Sequence[str], missing: Sequence[str]) -> None:
        """Take note of which texts stand for a missing value. Raises `DataError` when wanted arrays have different
        numbers of rows."""
        self._missing = frozenset(missing) | {""}
        sizes = {name: len(self._arrays[name]) for name in wanted}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise self._origin.error(f"the arrays have different numbers of rows: {told}")

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    def ids(self, name: str) -> list[str]:
        """Ids as texts, empty where missing. Raises `DataError` when they are neither texts nor whole numbers."""
        return self._without_missing(ValueReader(self._origin).ids(self._plain(name)))

    def label(self, name: str) -> list[str]:
        """A label column as texts, empty where missing. Raises `DataError` when it has none."""
        return self._without_missing(ValueReader(self._origin).label(self._plain(name)))

    def column(self, name: str, declared: ColumnKind | None) -> Column:
        """A column. Raises `DataError` when it holds anything but numbers, texts, dates or pixels."""
        column = ValueReader(self._origin).column(name, self._plain(name))
        if not isinstance(column, Texts):
            return column
        return Texts.of(
            None if cell is None or cell.strip() in self._missing else cell.strip() for cell in column.cells()
        )

    def _without_missing(self, cells: Sequence[str]) -> list[str]:
        return ["" if cell.strip() in self._missing else cell.strip() for cell in cells]

    def _plain(self, name: str) -> Array:
        """The array, texts as Python's own."""
        array = self._arrays[name]
        return array.astype(object) if array.dtype.kind in "US" else np.asarray(array)
