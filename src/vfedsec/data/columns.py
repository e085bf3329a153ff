"""Reading a column of a table as one of the kinds, or finding out which kind it is.

Without a declared kind, numbers are numeric, dates are dates and arrays of pixels images. A column of texts is boolean
when all of them are words of `BOOLEAN_WORDS`, a date when all are ISO 8601 dates, numeric when nine in ten of the
different ones are numbers, and categorical otherwise. A numeric column that holds a text is refused: one typo must not
make categories of a thousand numbers, which the other parties of a group would be told. A column without any value
counts as numeric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.cells import MISSING, Column, Dates, Texts, number_text
from vfedsec.data.dates import seconds_of, text_of
from vfedsec.data.table import Table

LARGEST_NUMBER = 1e100
"""Numbers beyond it are refused, so that no sum of squares can overflow."""

BOOLEAN_WORDS = {"true": True, "yes": True, "false": False, "no": False}
"""What makes an undeclared column boolean, in upper or lower case."""

_MOSTLY = 0.9
_LARGEST_PIXEL = 1e6

_DECLARED_BOOLEAN_WORDS = BOOLEAN_WORDS | {
    "1": True,
    "t": True,
    "y": True,
    "0": False,
    "f": False,
    "n": False,
}


def kind_of(table: Table, name: str) -> ColumnKind:
    """The declared kind of a column, or the one its values have. Raises `DataError` when pixels are declared to be
    something else, or something else to be pixels."""
    column = table.column(name)
    declared = table.kinds.get(name)
    if declared and (declared == "image") != is_image(column):
        what = "an array of pixels" if is_image(column) else "no array of pixels"
        raise table.error(f"the kind is declared {declared}, and the column is {what}", column=name)
    return declared or _inferred(column)


def is_image(column: Column) -> bool:
    """Whether a column holds pixels."""
    return isinstance(column, np.ndarray) and column.ndim > 1


def numbers(table: Table, name: str) -> NDArray[np.float64]:
    """The column as numbers, NaN where missing.

    Raises `DataError` at the first cell that is none.
    """
    column = table.column(name)
    if isinstance(column, Dates):
        if not np.isnan(column.seconds).all():
            raise table.error("a numeric column holds dates", column=name)
        return column.seconds  # one without any value counts as numbers, whatever its type
    values = _parsed(table, name, column) if isinstance(column, Texts) else column
    too_large = np.abs(values) > LARGEST_NUMBER
    if too_large.any():
        message = f"a number is infinite or beyond {LARGEST_NUMBER:g}"
        raise table.error(message, column=name, row=int(too_large.argmax()))
    return values


def texts(table: Table, name: str) -> Texts:
    """The column as texts."""
    column = table.column(name)
    if isinstance(column, Texts):
        return column
    values = column.seconds if isinstance(column, Dates) else column
    written: Callable[[float], str] = text_of if isinstance(column, Dates) else number_text
    found = ~np.isnan(values)
    different, places = np.unique(values[found], return_inverse=True)
    codes = np.full(len(values), MISSING, dtype=np.int32)
    codes[found] = places
    return Texts(codes, tuple(map(written, different.tolist())))


def truths(table: Table, name: str) -> NDArray[np.float64]:
    """The column as ones and zeros, NaN where missing.

    Raises `DataError` at the first cell that is neither.
    """
    message = "a boolean column holds something else"
    return _by_word(table, name, texts(table, name), lambda word: _DECLARED_BOOLEAN_WORDS.get(word.lower()), message)


def seconds(table: Table, name: str) -> NDArray[np.float64]:
    """The column as seconds since the beginning of 1970, NaN where missing.

    Raises `DataError` at the first cell that is no date.
    """
    column = table.column(name)
    if isinstance(column, Dates):
        return column.seconds
    return _by_word(table, name, texts(table, name), seconds_of, "a date column holds something else than ISO dates")


def pixels(table: Table, name: str) -> NDArray[Any]:
    """The column as pixels, (rows, height, width) or with channels behind.

    Raises `DataError` when it holds none, or at the first row with a pixel that is not a number of a sensible size.
    """
    column = table.column(name)
    if isinstance(column, Texts | Dates) or not is_image(column):
        raise table.error("the column is no array of pixels", column=name)
    if 0 in column.shape[1:]:
        raise table.error("the images have no pixels", column=name)
    if column.dtype.kind == "f":
        is_far = ~(np.abs(column) <= _LARGEST_PIXEL).reshape(len(column), -1).all(axis=1)
        if is_far.any():
            message = f"a pixel is no number from -{_LARGEST_PIXEL:g} to {_LARGEST_PIXEL:g}"
            raise table.error(message, column=name, row=int(is_far.argmax()))
    return column


def _inferred(column: Column) -> ColumnKind:
    if isinstance(column, Texts):
        return _inferred_of_words(column.words)
    if isinstance(column, Dates):
        return "date"
    return "image" if is_image(column) else "numeric"


def _inferred_of_words(words: tuple[str, ...]) -> ColumnKind:
    if not words:
        return "numeric"
    if all(word.lower() in BOOLEAN_WORDS for word in words):
        return "boolean"
    if all(seconds_of(word) is not None for word in words):
        return "date"
    found = sum(_number(word) is not None for word in words)
    return "numeric" if found >= _MOSTLY * len(words) else "categorical"


def _parsed(table: Table, name: str, column: Texts) -> NDArray[np.float64]:
    declared = "" if name in table.kinds else "; if it is to be categorical, say so under [data.kinds]"
    return _by_word(table, name, column, _number, f"a numeric column holds a text{declared}")


def _by_word(
    table: Table, name: str, column: Texts, read: Callable[[str], float | None], message: str
) -> NDArray[np.float64]:
    values = [read(word) for word in column.words]
    row = column.first_row_of(np.array([value is None for value in values], dtype=np.bool_))
    if row is not None:
        raise table.error(message, column=name, row=row)
    spread: NDArray[np.float64] = column.spread(np.array(values, dtype=np.float64), math.nan)
    return spread


def _number(text: str) -> float | None:
    # Python reads 1_2 as 12; in a table it is a code.
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None
