"""A party's table in memory: every row has an id of its own, every column a cell for every row.

Cells stay as they were read, texts or numbers, until `columns` reads them as a kind. Rows are
counted from 1 in messages, the header not counted; cells and ids themselves never stand in a
message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.errors import DataError

Texts = list[str | None]
Column = Texts | NDArray[np.float64]
"""Texts with `None` where a value is missing, or numbers with NaN there."""


def data_error(party: str, source: str, message: str, *, column: str = "", row: int | None = None) -> DataError:
    """An error that says where: party, source, column, row (given from 0, told from 1)."""
    place = [f"party {party}", source]
    if column:
        place.append(f"column {column!r}")
    if row is not None:
        place.append(f"data row {row + 1}")
    return DataError(f"{', '.join(place)}: {message}")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one party. Raises `DataError` when ids are missing or repeated, or lengths differ."""

    party: str
    """Whose it is."""
    ids: list[str] = field(repr=False)
    """Whose row each row is; unique."""
    columns: dict[str, Column] = field(repr=False)
    """The feature columns by name."""
    label: list[str] | None = field(default=None, repr=False)
    """The column to predict, as text; only the active party has one."""
    source: str = "memory"
    """Where the rows came from, for messages."""
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    """Kinds of columns that should not be inferred."""

    def __post_init__(self) -> None:
        if not self.ids:
            raise self.error("holds no rows")
        self._check_ids()
        for name, column in self.columns.items():
            self._check_length(f"column {name!r}", len(column))
        if self.label is not None:
            self._check_length("the label", len(self.label))
            if "" in self.label:
                raise self.error("the label is missing", row=self.label.index(""))

    @classmethod
    def from_columns(
        cls,
        party: str,
        ids: Sequence[str] | Sequence[int] | NDArray[Any],
        columns: Mapping[str, Sequence[Any] | NDArray[Any]],
        label: Sequence[Any] | NDArray[Any] | None = None,
        *,
        source: str = "memory",
        kinds: Mapping[str, ColumnKind] | None = None,
    ) -> Table:
        """A table from numbers, booleans and texts in memory; `None` or NaN: a missing value."""
        build = _Builder(party, source)
        return cls(
            party=party,
            ids=[build.id_text(row, value) for row, value in enumerate(ids)],
            columns={name: build.column(name, values) for name, values in columns.items()},
            label=None if label is None else build.label(label),
            source=source,
            kinds=dict(kinds or {}),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def error(self, message: str, *, column: str = "", row: int | None = None) -> DataError:
        """A `DataError` about this table, to be raised."""
        return data_error(self.party, self.source, message, column=column, row=row)

    def column(self, name: str) -> Column:
        """One column. Raises `DataError` when the table has none of that name."""
        if name not in self.columns:
            raise self.error(f"has no such column; it has {sorted(self.columns)}", column=name)
        return self.columns[name]

    def _check_ids(self) -> None:
        seen: dict[str, int] = {}
        for row, value in enumerate(self.ids):
            if not value:
                raise self.error("the id is missing", row=row)
            if seen.setdefault(value, row) != row:
                raise self.error(f"the id repeats that of data row {seen[value] + 1}", row=row)

    def _check_length(self, what: str, length: int) -> None:
        if length != len(self.ids):
            raise self.error(f"{what} has {length} values for {len(self.ids)} ids")


def number_text(value: float) -> str:
    """A number as it would stand in a file: whole ones without a point."""
    return str(int(value)) if value.is_integer() else repr(value)


@dataclass(frozen=True)
class _Builder:
    """Turns values in memory into the cells of a table."""

    party: str
    source: str

    def id_text(self, row: int, value: object) -> str:
        """An id as text; empty when it is missing, which the table then refuses."""
        if value is None or _is_nan(value):
            return ""
        if isinstance(value, str):
            return self._encodable(value.strip(), "", row)
        if isinstance(value, Integral) and not isinstance(value, bool):
            return str(int(value))
        raise data_error(
            self.party,
            self.source,
            f"an id is a text or an integer, not {type(value).__name__}",
            row=row,
        )

    def column(self, name: str, values: Sequence[Any] | NDArray[Any]) -> Column:
        """A column: numbers when every value is one, else texts."""
        array = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        if array.ndim != 1:
            raise data_error(
                self.party, self.source, f"a column has one value a row, not {array.ndim} axes", column=name
            )
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
        cells = [self._plain(name, row, value) for row, value in enumerate(array.tolist())]
        if any(isinstance(cell, str) for cell in cells) or not any(c is not None for c in cells):
            return [_cell_text(cell) for cell in cells]
        return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)

    def label(self, values: Sequence[Any] | NDArray[Any]) -> list[str]:
        """A label column as texts; empty where one is missing, which the table then refuses."""
        column = self.column("label", values)
        cells = column if isinstance(column, list) else [_cell_text(v) for v in column.tolist()]
        return [cell or "" for cell in cells]

    def _plain(self, name: str, row: int, value: object) -> str | float | None:
        if isinstance(value, str):
            return self._encodable(value, name, row)
        if value is None or _is_nan(value):
            return None
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, Real):
            return float(value)
        message = f"a cell is a number, a boolean or a text, not {type(value).__name__}"
        raise data_error(self.party, self.source, message, column=name, row=row)

    def _encodable(self, text: str, name: str, row: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            message = "a text is not valid Unicode"
            raise data_error(self.party, self.source, message, column=name, row=row) from None
        return text


def _is_nan(value: object) -> bool:
    return isinstance(value, Real) and math.isnan(value)


def _cell_text(cell: str | float | None) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return None if math.isnan(cell) else number_text(cell)
