"""From columns to features: all parties of a group encode alike without showing each other rows.

Each party summarises its own columns; the summaries are merged in a fixed order; an `Encoder` is
made of the merged ones. Merged summaries equal, up to rounding, those of all the rows pooled.
Moments are a mean and a sum of squared deviations, merged with Chan's formula, so a large offset
costs no precision.

Kinds that disagree: a party whose column is empty follows the others; boolean and categorical make
categorical. Numeric and any other kind are refused, because a numeric summary does not tell the
values that the categories would need (and should not): one of the parties has to declare the
column's kind. Parties compare kinds before they send each other summaries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.columns import LARGEST_NUMBER, kind_of, numbers, texts, truths
from vfedsec.data.table import Table
from vfedsec.errors import DataError
from vfedsec.protocol.interfaces import Floats

CATEGORY_CAP = 32
"""Categories that get a column of their own; the rest share one."""

# Only rows unlike all those of the fit come near it: n fitted rows stay within sqrt(n).
_FARTHEST = 1e6

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a party tells of a column to the other parties of its group."""

    name: str
    kind: ColumnKind
    count: _Count
    """Rows with a value."""
    missing: _Count
    """Rows without one."""
    mean: float = 0.0
    """Of a numeric column."""
    deviation: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The sum of squared differences from the mean, of a numeric column."""
    categories: dict[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    """How often each text occurs, of any other column."""

    def __post_init__(self) -> None:
        if not (abs(self.mean) <= LARGEST_NUMBER and math.isfinite(self.deviation)):
            raise ValueError("the moments are out of range")
        if sum(self.categories.values()) != (0 if self.kind == "numeric" else self.count):
            raise ValueError("the categories do not add up")


def summarise(table: Table, columns: Sequence[str]) -> list[ColumnSummary]:
    """The summaries of the named columns.

    Raises `DataError` at a cell that is not of its column's kind.
    """
    return [_summary(table, name, kind_of(table, name)) for name in columns]


def merge(parties: Mapping[str, Sequence[ColumnSummary]]) -> list[ColumnSummary]:
    """The summaries of all rows together; the order of the parties decides the last bits.

    Every party gives the same columns in the same order. Raises `DataError` when kinds do not go
    together.
    """
    by_column = zip(*parties.values(), strict=True)
    return [_merged(dict(zip(parties, column, strict=True))) for column in by_column]


def told_kind(summary: ColumnSummary) -> ColumnKind | None:
    """How a party reads a column, if it has any value of it."""
    return summary.kind if summary.count else None


def common_kind(name: str, kinds: Mapping[str, ColumnKind | None]) -> ColumnKind | None:
    """What a column is to a group, from what it is to each party. Raises `DataError` when that does not go together."""
    told = {party: kind for party, kind in kinds.items() if kind}
    different = set(told.values())
    if len(different) > 1 and "numeric" in different:
        reads = ", ".join(f"{kind} for {party}" for party, kind in told.items())
        raise DataError(f"column {name!r} is {reads}: declare its kind under [data.kinds] of the party files")
    if len(different) > 1:
        return "categorical"
    return next(iter(different), None)


class Encoder:
    """Encodes any table with the summarised columns; equal summaries make equal encoders."""

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

    def transform(self, table: Table) -> Floats:
        """The features (rows, width).

        Raises `DataError` at a cell that is not of its column's kind.
        """
        features = np.zeros((len(table), self.width), dtype=np.float32)
        start = 0
        for column in self._columns:
            stop = start + len(column.names)
            column.fill(features[:, start:stop], table)
            start = stop
        return features


def _summary(table: Table, name: str, kind: ColumnKind) -> ColumnSummary:
    if kind == "numeric":
        return _numeric_summary(name, numbers(table, name))
    if kind == "boolean":
        truths(table, name)  # refuses what is not boolean
    values = Counter(cell for cell in texts(table, name) if cell is not None)
    count = values.total()
    return ColumnSummary(
        name=name,
        kind=kind,
        count=count,
        missing=len(table) - count,
        # Sorted, so that the order in which they occur is not told.
        categories=dict(sorted(values.items())),
    )


def _numeric_summary(name: str, values: NDArray[np.float64]) -> ColumnSummary:
    found = values[~np.isnan(values)]
    missing = len(values) - len(found)
    if not len(found):
        return ColumnSummary(name=name, kind="numeric", count=0, missing=missing)
    # Differences from any one value make a constant column exactly constant.
    shifted = found - found[0]
    mean = shifted.mean()
    return ColumnSummary(
        name=name,
        kind="numeric",
        count=len(found),
        missing=missing,
        mean=float(found[0] + mean),
        deviation=float(np.square(shifted - mean).sum()),
    )


def _merged(parties: Mapping[str, ColumnSummary]) -> ColumnSummary:
    parts = list(parties.values())
    count, mean, deviation = _pooled_moments(parts)
    pooled: Counter[str] = Counter()
    for part in parts:
        pooled.update(part.categories)
    kind = common_kind(parts[0].name, {party: told_kind(part) for party, part in parties.items()})
    try:
        return ColumnSummary(
            name=parts[0].name,
            kind=kind or parts[0].kind,
            count=count,
            missing=sum(part.missing for part in parts),
            mean=mean,
            deviation=deviation,
            categories=dict(pooled),
        )
    except ValueError:
        raise DataError(f"column {parts[0].name!r} of {', '.join(parties)} has moments beyond all numbers") from None


def _pooled_moments(parts: Sequence[ColumnSummary]) -> tuple[int, float, float]:
    count, mean, deviation = 0, 0.0, 0.0
    for part in parts:
        if part.count:
            total = count + part.count
            step = part.mean - mean
            deviation += part.deviation + step * step * count * part.count / total
            # Starting from nothing the mean is taken as it is: mean + step may round.
            mean = mean + step * part.count / total if count else part.mean
            count = total
    return count, mean, deviation


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
        name = self.summary.name
        values = [name] if self.summary.kind != "categorical" else [f"{name}={c}" for c in self.kept]
        values += [f"{name} is another"] if self.has_other else []
        return values + ([f"{name} is missing"] if self.summary.missing else [])

    def fill(self, features: Floats, table: Table) -> None:
        """Write the features of all rows into zeros."""
        absent = self._fill_values(features, table)
        if self.summary.missing:
            features[:, -1] = absent

    def _fill_values(self, features: Floats, table: Table) -> NDArray[np.bool_]:
        if self.summary.kind == "categorical":
            return self._fill_categories(features, texts(table, self.summary.name))
        if self.summary.kind == "boolean":
            values = truths(table, self.summary.name)
        else:
            values = self._standardised(numbers(table, self.summary.name))
        features[:, 0] = np.nan_to_num(values)
        return np.isnan(values)

    def _standardised(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.summary.deviation:
            return np.where(np.isnan(values), values, 0.0)
        spread = math.sqrt(self.summary.deviation / self.summary.count)
        return np.clip((values - self.summary.mean) / spread, -_FARTHEST, _FARTHEST)

    def _fill_categories(self, features: Floats, cells: list[str | None]) -> NDArray[np.bool_]:
        nowhere = -1
        other = len(self.kept) if self.has_other else nowhere
        places = np.array([nowhere if c is None else self.kept.get(c, other) for c in cells])
        rows = np.flatnonzero(places != nowhere)
        features[rows, places[rows]] = 1.0
        return np.array([cell is None for cell in cells])
