"""A few cells of a table as people read them, for their owner's own eyes."""

from __future__ import annotations

import math

from vfedsec.data.cells import Column, Dates, Texts, number_text
from vfedsec.data.dates import text_of
from vfedsec.data.table import Table

_LONGEST = 60


def shown_cells(table: Table, name: str, rows: int) -> list[str]:
    """The first cells of a column, empty where missing, without what a terminal would obey."""
    return [printable(cell) for cell in _shown(table.column(name), slice(rows))]


def printable(text: str) -> str:
    """A text from somebody's table for a terminal: short, and without characters that move or colour anything."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in text[:_LONGEST])


def _shown(column: Column, rows: slice) -> list[str]:
    if isinstance(column, Texts):
        return [cell or "" for cell in column.cells(rows)]
    if isinstance(column, Dates):
        return ["" if math.isnan(one) else text_of(one) for one in column.seconds[rows].tolist()]
    if column.ndim > 1:
        size = "x".join(map(str, column.shape[1:]))
        return [f"{size}, mean {image.mean():.3g}" for image in column[rows]]
    return ["" if math.isnan(one) else number_text(one) for one in column[rows].tolist()]
