"""From columns to features, all float32 and near zero, so that one learning rate fits them all.

    numeric       how many standard deviations from the mean
    categorical   one feature a category, the most frequent ones, and one for the rest
    boolean       one or zero
    date          the point in time as a number, and its place in the year, the week and the day as points on circles
    image         every pixel, from 0 to 1

and behind them, for a column with missing values, whether one is missing. Equal summaries make equal encoders.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Encoding
from vfedsec.data.cells import MISSING
from vfedsec.data.columns import numbers, pixels, seconds, texts, truths
from vfedsec.data.dates import PARTS, TIME_PARTS, parts_of
from vfedsec.data.summaries import ColumnSummary
from vfedsec.data.table import Table
from vfedsec.protocol.interfaces import Floats, Rows

CATEGORY_CAP = Encoding().category_cap
"""Categories that get a feature of their own, where a job says nothing else; the rest share one."""

# Only rows unlike all those of the fit come near it: n fitted rows stay within sqrt(n).
_FARTHEST = 1e6

Missing = NDArray[np.bool_]


class Encoder:
    """Encodes any table with the summarised columns."""

    def __init__(self, summaries: Iterable[ColumnSummary], *, category_cap: int = CATEGORY_CAP) -> None:
        self._columns = [_ColumnEncoder.of(summary, category_cap) for summary in summaries]

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature stands for."""
        return tuple(name for column in self._columns for name in column.names)

    @property
    def width(self) -> int:
        """How many features a row has."""
        return len(self.names)

    def variety(self) -> dict[str, float]:
        """Of each categorical column, how many different texts there are for each value: 1 where all differ."""
        summaries = [column.summary for column in self._columns]
        return {
            one.name: len(one.categories) / one.count for one in summaries if one.kind == "categorical" and one.count
        }

    def transform(self, table: Table, order: Rows | None = None) -> Floats:
        """The features (rows, width), of the rows in this order where one is given.

        Raises `DataError` at a cell that is not of its column's kind.
        """
        rows = np.arange(len(table), dtype=np.int32) if order is None else order
        features = np.zeros((len(rows), self.width), dtype=np.float32)
        start = 0
        for column in self._columns:
            stop = start + len(column.names)
            column.fill(features[:, start:stop], table, rows)
            start = stop
        return features


@dataclass(frozen=True)
class _ColumnEncoder:
    """One column's features: its values, then whether one is missing (if one ever was)."""

    summary: ColumnSummary
    kept: dict[str, int]
    """The categories with a feature of their own, and which."""
    has_other: bool

    @classmethod
    def of(cls, summary: ColumnSummary, cap: int) -> _ColumnEncoder:
        if summary.kind != "categorical":
            return cls(summary, {}, False)
        by_frequency = sorted(summary.categories.items(), key=lambda item: (-item[1], item[0]))
        kept = {name: place for place, (name, _) in enumerate(by_frequency[:cap])}
        return cls(summary, kept, len(by_frequency) > cap)

    @property
    def names(self) -> list[str]:
        return self._value_names() + ([f"{self.summary.name} is missing"] if self.summary.missing else [])

    def _value_names(self) -> list[str]:
        name = self.summary.name
        match self.summary.kind:
            case "categorical":
                return [f"{name}={category}" for category in self.kept] + [f"{name} is another"] * self.has_other
            case "date":
                return [name, *(f"{name} {part}" for part in self._parts())]
            case "image":
                return [f"{name}{list(place)}" for place in np.ndindex(self.summary.told.shape)]
            case _:
                return [name]

    def _parts(self) -> tuple[str, ...]:
        return PARTS + TIME_PARTS if self.summary.timed else PARTS

    def fill(self, features: Floats, table: Table, rows: Rows) -> None:
        """Write the features of these rows into zeros."""
        missing = self._fill_values(features, table, rows)
        if self.summary.missing:
            features[:, -1] = missing

    def _fill_values(self, features: Floats, table: Table, rows: Rows) -> Missing:
        name = self.summary.name
        match self.summary.kind:
            case "categorical":
                return self._fill_categories(features, table, rows)
            case "date":
                return self._fill_dates(features, seconds(table, name)[rows])
            case "image":
                return self._fill_pixels(features, table, rows)
            case "boolean":
                return _fill_numbers(features, truths(table, name)[rows])
            case _:
                return _fill_numbers(features, self._standardised(numbers(table, name)[rows]))

    def _standardised(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        spread = self.summary.spread
        if not spread:
            return np.where(np.isnan(values), values, 0.0)
        return np.clip((values - self.summary.mean) / spread, -_FARTHEST, _FARTHEST)

    def _fill_dates(self, features: Floats, values: NDArray[np.float64]) -> Missing:
        parts = self._parts()
        features[:, 1 : 1 + len(parts)] = parts_of(values, with_time=self.summary.timed > 0)
        return _fill_numbers(features, self._standardised(values))

    def _fill_categories(self, features: Floats, table: Table, rows: Rows) -> Missing:
        column = texts(table, self.summary.name)
        other = len(self.kept) if self.has_other else MISSING
        places = np.array([self.kept.get(word, other) for word in column.words], dtype=np.int64)
        in_order = column.spread(places, MISSING)[rows]
        known = np.flatnonzero(in_order != MISSING)
        features[known, in_order[known]] = 1.0
        missing: Missing = column.codes[rows] == MISSING
        return missing

    def _fill_pixels(self, features: Floats, table: Table, rows: Rows) -> Missing:
        images, told = pixels(table, self.summary.name), self.summary.told
        if (images.shape[1:], images.dtype.name) != (told.shape, told.pixel):
            message = f"expected images of {list(told.shape)} {told.pixel}"
            raise table.error(
                f"{message}, found {list(images.shape[1:])} {images.dtype.name}", column=self.summary.name
            )
        flat = images.reshape(len(images), math.prod(told.shape))
        # Whole numbers are shares of the largest there is; others are taken as they are.
        brightest = np.iinfo(images.dtype).max if images.dtype.kind == "u" else 1
        np.divide(flat[rows], np.float32(brightest), out=features[:, : flat.shape[1]], casting="unsafe")
        return np.zeros(len(rows), dtype=np.bool_)


def _fill_numbers(features: Floats, values: NDArray[np.float64]) -> Missing:
    features[:, 0] = np.nan_to_num(values)
    return np.isnan(values)
