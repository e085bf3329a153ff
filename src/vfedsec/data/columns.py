"""Reading a column of a table as one of the three kinds, or finding out which kind it is.

Without a declared kind, a column is boolean when all its values are words of `BOOLEAN_WORDS`,
numeric when nine in ten of its distinct values are numbers, and categorical otherwise. A numeric
column that holds a text is refused: one typo must not make categories of a thousand numbers, which
the other parties of a group would be told. A column without any value counts as numeric.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.table import Table, Texts, number_text

LARGEST_NUMBER = 1e100
"""Numbers beyond it are refused, so that no sum of squares can overflow."""

BOOLEAN_WORDS = {"true": True, "yes": True, "false": False, "no": False}
"""What makes an undeclared column boolean, in upper or lower case."""

_MOSTLY = 0.9

_DECLARED_BOOLEAN_WORDS = BOOLEAN_WORDS | {
    "1": True,
    "t": True,
    "y": True,
    "0": False,
    "f": False,
    "n": False,
}


def kind_of(table: Table, name: str) -> ColumnKind:
    """The declared kind of a column, or the one its values have."""
    return table.kinds.get(name) or _inferred(table, name)


def numbers(table: Table, name: str) -> NDArray[np.float64]:
    """The column as numbers, NaN where missing.

    Raises `DataError` at the first cell that is none.
    """
    column = table.column(name)
    values = _parsed(table, name, column) if isinstance(column, list) else column
    too_large = np.abs(values) > LARGEST_NUMBER
    if too_large.any():
        message = f"a number is infinite or beyond {LARGEST_NUMBER:g}"
        raise table.error(message, column=name, row=int(too_large.argmax()))
    return values


def texts(table: Table, name: str) -> Texts:
    """The column as texts, `None` where missing."""
    column = table.column(name)
    if isinstance(column, list):
        return column
    return [None if math.isnan(value) else number_text(value) for value in column.tolist()]


def truths(table: Table, name: str) -> NDArray[np.float64]:
    """The column as ones and zeros, NaN where missing.

    Raises `DataError` at the first cell that is neither.
    """
    values = [math.nan if cell is None else _DECLARED_BOOLEAN_WORDS.get(cell.lower()) for cell in texts(table, name)]
    if None in values:
        message = "a boolean column holds something else"
        raise table.error(message, column=name, row=values.index(None))
    return np.array(values, dtype=np.float64)


def _inferred(table: Table, name: str) -> ColumnKind:
    column = table.column(name)
    if not isinstance(column, list):
        return "numeric"
    values = {cell for cell in column if cell is not None}
    if values and all(value.lower() in BOOLEAN_WORDS for value in values):
        return "boolean"
    found = sum(_number(value) is not None for value in values)
    return "numeric" if found >= _MOSTLY * len(values) else "categorical"


def _parsed(table: Table, name: str, column: Texts) -> NDArray[np.float64]:
    values = [math.nan if cell is None else _number(cell) for cell in column]
    if None in values:
        declared = "" if name in table.kinds else "; if it is to be categorical, say so under [data.kinds]"
        raise table.error(f"a numeric column holds a text{declared}", column=name, row=values.index(None))
    return np.array(values, dtype=np.float64)


def _number(text: str) -> float | None:
    # Python reads 1_2 as 12; in a table it is a code.
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None
