"""Rows whose columns are arrays: the counterpart of `DuckRows` for files of arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from vfedsec.config.party import ColumnKind
from vfedsec.data.array_files import Array
from vfedsec.data.cells import Column, Texts
from vfedsec.data.origin import Origin
from vfedsec.data.values import ValueReader


class ArrayRows:
    """The rows of arrays by name; the first axis of each is the row."""

    def __init__(self, origin: Origin, arrays: Mapping[str, Array]) -> None:
        """Raises `DataError` when there is no array."""
        self._origin = origin
        self._arrays = arrays
        self._missing: frozenset[str] = frozenset()
        self.names = self._wanted = list(arrays)
        if not arrays:
            raise origin.error("the file holds no array")

    def read(self, wanted: Sequence[str], missing: Sequence[str], numeric: Collection[str] = ()) -> None:
        """Take note of which arrays are wanted, and which texts stand for a missing value; arrays know their numbers.
        Raises `DataError` when wanted arrays are without rows, or have different numbers of them."""
        self._missing = frozenset(missing) | {""}
        self._wanted = list(wanted) or self.names
        for name in wanted:
            if not self._arrays[name].ndim:
                raise self._origin.error("the array is a single value, not one a row", column=name)
        sizes = {name: len(self._arrays[name]) for name in wanted}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise self._origin.error(f"the arrays have different numbers of rows: {told}")

    def __len__(self) -> int:
        first = self._arrays[self._wanted[0]]
        return len(first) if first.ndim else 0

    def ids(self, name: str) -> list[str]:
        """Ids as texts, empty where missing. Raises `DataError` when they are neither texts nor whole numbers."""
        return self._without_missing(ValueReader(self._origin).ids(self._plain(name)))

    def label(self, name: str) -> list[str]:
        """A label column as texts, empty where missing. Raises `DataError` when it has none."""
        values = self._plain(name)
        if values.ndim == 1 and values.dtype.kind in "iu":
            return self._without_missing(list(map(str, values.tolist())))
        return self._without_missing(ValueReader(self._origin).label(values))

    def column(self, name: str, declared: ColumnKind | None) -> Column:
        """A column. Raises `DataError` when it holds anything but numbers, texts, dates or pixels."""
        values = self._plain(name)
        if declared == "categorical" and values.ndim == 1 and values.dtype.kind in "iu":
            return Texts.of(map(str, values.tolist()))  # a float would make two long codes one
        column = ValueReader(self._origin).column(name, values)
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
