"""A party's table in memory: every row has an id of its own, every column a cell for every row.

Cells stay as they were read until `columns` reads them as a kind. Rows are counted from 1 in messages, the header not
counted; cells and ids themselves never stand in a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.cells import Column
from vfedsec.data.origin import Origin
from vfedsec.data.values import ValueReader
from vfedsec.errors import DataError


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
    id_column: str = ""
    """What the source calls the ids, for messages."""
    label_column: str = ""
    """What the source calls the label, for messages."""

    def __post_init__(self) -> None:
        if not self.ids:
            raise self.error("holds no rows")
        self._check_ids()
        for name, column in self.columns.items():
            self._check_length(f"column {name!r}", len(column))
        if self.label is not None:
            self._check_length("the label", len(self.label))
            if "" in self.label:
                raise self.label_error("is missing", row=self.label.index(""))

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
        """A table from numbers, booleans, texts and dates in memory, `None` or NaN where a value is missing, and from
        arrays of images, whose first axis is the row. Raises `DataError` for anything else."""
        read = ValueReader(Origin(party, source))
        return cls(
            party=party,
            ids=read.ids(ids),
            columns={name: read.column(name, values) for name, values in columns.items()},
            label=None if label is None else read.label(label),
            source=source,
            kinds=dict(kinds or {}),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def error(self, message: str, *, column: str = "", row: int | None = None) -> DataError:
        """A `DataError` about this table, to be raised."""
        return Origin(self.party, self.source).error(message, column=column, row=row)

    def label_error(self, what: str, *, row: int) -> DataError:
        """A `DataError` about one label, to be raised."""
        return self.error(f"the label {what}", column=self.label_column, row=row)

    def column(self, name: str) -> Column:
        """One column. Raises `DataError` when the table has none of that name."""
        if name not in self.columns:
            raise self.error(f"has no such column; it has {sorted(self.columns)}", column=name)
        return self.columns[name]

    def _check_ids(self) -> None:
        seen: dict[str, int] = {}
        for row, value in enumerate(self.ids):
            if not value:
                raise self.error("the id is missing", column=self.id_column, row=row)
            if seen.setdefault(value, row) != row:
                message = f"the id repeats that of data row {seen[value] + 1}"
                raise self.error(message, column=self.id_column, row=row)

    def _check_length(self, what: str, length: int) -> None:
        if length != len(self.ids):
            raise self.error(f"{what} has {length} values for {len(self.ids)} ids")
