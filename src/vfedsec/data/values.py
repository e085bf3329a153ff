"""Values in memory, from a notebook or a file of arrays, as the cells of a table."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.cells import Column, Dates, Texts, number_text
from vfedsec.data.dates import YEARS, seconds_from_micros, seconds_of_date
from vfedsec.data.origin import Origin

Values = Sequence[Any] | NDArray[Any]

_IMAGE_AXES = (3, 4)


@dataclass(frozen=True)
class ValueReader:
    """Turns values into the cells of a table."""

    origin: Origin

    def ids(self, values: Values) -> list[str]:
        """Ids as texts; empty where one is missing, which the table then refuses. Raises `DataError` at the first that
        is neither a text nor an integer."""
        return [self._id(row, value) for row, value in enumerate(values)]

    def label(self, values: Values) -> list[str]:
        """A label column as texts; empty where one is missing, which the table then refuses."""
        column = self.column("label", values)
        if isinstance(column, Texts):
            return [cell or "" for cell in column.cells()]
        if isinstance(column, Dates) or column.ndim != 1:
            raise self.origin.error("a label is a number or a text", column="label")
        return ["" if math.isnan(value) else number_text(value) for value in column.tolist()]

    def column(self, name: str, values: Values) -> Column:
        """Numbers when every value is one, dates when every value is one, pixels, else texts. Raises `DataError` for
        anything else."""
        array = np.asarray(values, dtype=None if isinstance(values, np.ndarray) else object)
        if array.ndim in _IMAGE_AXES and array.dtype.kind in "uf":
            return array
        if array.ndim != 1:
            raise self.origin.error(f"a column has one value a row, not {array.ndim} axes", column=name)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
        if array.dtype.kind == "M":
            return self._dates(name, array)
        return self._of_objects(name, array.tolist())

    def _dates(self, name: str, array: NDArray[Any]) -> Dates:
        found, (first, last) = ~np.isnat(array), YEARS
        years = array.astype("datetime64[Y]").astype(np.int64) + 1970
        is_far = found & ((years < first) | (years > last))
        if is_far.any():
            message = f"a date is not of the years {first} to {last}"
            raise self.origin.error(message, column=name, row=int(is_far.argmax()))
        micros: Any = array.astype("datetime64[us]").astype(np.int64)
        return Dates(np.where(found, seconds_from_micros(micros), np.nan))

    def _of_objects(self, name: str, values: list[Any]) -> Column:
        cells = [self._plain(name, row, value) for row, value in enumerate(values)]
        found = {type(cell) for cell in cells if cell is not None}
        if found == {float}:
            return np.array([math.nan if cell is None else cell for cell in cells], dtype=np.float64)
        if found == {_Moment}:
            moments = [math.nan if _is_missing(value) else seconds_of_date(value) for value in values]
            return Dates(np.array(moments, dtype=np.float64))
        return Texts.of(_cell_text(cell) for cell in cells)

    def _id(self, row: int, value: object) -> str:
        if _is_missing(value):
            return ""
        if isinstance(value, str):
            return self._encodable(value.strip(), "", row)
        if isinstance(value, Integral) and not isinstance(value, bool):
            return str(int(value))
        raise self.origin.error(f"an id is a text or an integer, not {type(value).__name__}", row=row)

    def _plain(self, name: str, row: int, value: object) -> str | float | None:
        if isinstance(value, str):
            return self._encodable(value, name, row)
        if _is_missing(value):
            return None
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, Real):
            return _nearest_float(value)
        if isinstance(value, dt.date):
            return _Moment(value.isoformat())
        message = f"a cell is a number, a boolean, a date or a text, not {type(value).__name__}"
        raise self.origin.error(message, column=name, row=row)

    def _encodable(self, text: str, name: str, row: int) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.origin.error("a text is not valid Unicode", column=name, row=row) from None
        return text


class _Moment(str):
    """The ISO text of what was a date."""


def _is_missing(value: object) -> bool:
    # What is not a number, or not a time, is not even itself; and no whole number is too large for this.
    return value is None or (isinstance(value, Real | dt.date) and value != value)


def _nearest_float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _cell_text(cell: str | float | None) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return number_text(cell)
