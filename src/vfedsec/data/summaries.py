"""What encoders are fitted on: counts and sums of a column, which add up over parties without any rounding.

A column's summary over several parties is that of their rows pooled, to the last bit. In a group it comes from
`agreement`, where nobody sees another's; whoever has all the tables merges them here.

Kinds that disagree: a party whose column is empty follows the others; boolean and categorical make categorical. Any
other two are refused, because the sums of numbers do not tell the values that categories would need (and should not):
one of the parties has to declare the column's kind.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.columns import kind_of, numbers, pixels, seconds, texts, truths
from vfedsec.data.dates import has_time
from vfedsec.data.exact import UNIT_BITS, exact_sums
from vfedsec.data.table import Table
from vfedsec.errors import DataError

_ROOT_BITS = 64
"""Behind the point of a square root, where a float has 53 in all."""
_MERGE_TO_CATEGORIES = {"boolean", "categorical"}


class ToldKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a party reads a column."""

    kind: ColumnKind | None
    """None where it has no value of it."""
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()
    """Of an image: height, width, and channels if it has such an axis."""
    pixel: Annotated[str, msgspec.Meta(max_length=16)] = ""
    """Of an image: the type of its numbers."""


@dataclass(frozen=True, kw_only=True)
class ColumnSummary:
    """A column of one or more parties."""

    name: str
    told: ToldKind
    count: int
    """Rows with a value."""
    missing: int
    """Rows without one."""
    total: int = 0
    """The sum of numbers, or of seconds, in units of 2**-UNIT_BITS."""
    squares: int = 0
    """The sum of their squares, in units of 2**(-2 * UNIT_BITS)."""
    timed: int = 0
    """Dates with a time of day."""
    categories: Mapping[str, int] = field(default_factory=dict)
    """How often each text occurs, of a categorical or boolean column."""

    @property
    def kind(self) -> ColumnKind:
        """What the column is encoded as; one without any value as numbers."""
        return self.told.kind or "numeric"

    @property
    def mean(self) -> float:
        """Of the numbers, the float nearest to it; 0 without any."""
        return self.total / (self.count << UNIT_BITS) if self.count else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of the numbers; 0 without any."""
        if not self.count:
            return 0.0
        deviation = self.count * self.squares - self.total * self.total
        # In whole numbers up to the last step: no variance is too small or too large for them.
        return math.isqrt(deviation << 2 * _ROOT_BITS) / (self.count << UNIT_BITS + _ROOT_BITS)


def summarise(table: Table, columns: Sequence[str]) -> list[ColumnSummary]:
    """The summaries of the named columns.

    Raises `DataError` at a cell that is not of its column's kind.
    """
    return [_summary(table, name, kind_of(table, name)) for name in columns]


def merge(parties: Mapping[str, Sequence[ColumnSummary]]) -> list[ColumnSummary]:
    """The summaries of all rows together.

    Every party gives the same columns in the same order. Raises `DataError` when kinds do not go together.
    """
    by_column = zip(*parties.values(), strict=True)
    return [_merged(dict(zip(parties, column, strict=True))) for column in by_column]


def common_kind(name: str, told: Mapping[str, ToldKind]) -> ToldKind:
    """What a column is to a group, from what it is to each party. Raises `DataError` when that does not go together."""
    found = {party: one for party, one in told.items() if one.kind}
    different = set(found.values())
    if len(different) <= 1 and (len(found) == len(told) or not any(one.shape for one in different)):
        return next(iter(different), ToldKind(kind=None))
    if {one.kind for one in different} == _MERGE_TO_CATEGORIES:
        return ToldKind(kind="categorical")
    reads = ", ".join(f"{_told(one)} for {party}" for party, one in found.items())
    if {one.kind for one in different} == {"image"}:
        raise DataError(f"column {name!r} is {reads}: a group's images have one size, and each party has some")
    raise DataError(f"column {name!r} is {reads}: declare its kind under [data.kinds] of the party files")


def _told(told: ToldKind) -> str:
    sides = "x".join(map(str, told.shape))
    return f"{told.kind} {sides} of {told.pixel}" if sides else str(told.kind)


def _summary(table: Table, name: str, kind: ColumnKind) -> ColumnSummary:
    if kind == "image":
        return _image_summary(name, pixels(table, name))
    if kind in ("numeric", "date"):
        return _number_summary(table, name, kind)
    if kind == "boolean":
        truths(table, name)  # refuses what is not boolean
    categories = {text: times for text, times in texts(table, name).counts().items() if times}
    count = sum(categories.values())
    told = ToldKind(kind=kind if count else None)
    return ColumnSummary(name=name, told=told, count=count, missing=len(table) - count, categories=categories)


def _number_summary(table: Table, name: str, kind: ColumnKind) -> ColumnSummary:
    values = numbers(table, name) if kind == "numeric" else seconds(table, name)
    found = values[~np.isnan(values)]
    total, squares = exact_sums(found)
    return ColumnSummary(
        name=name,
        told=ToldKind(kind=kind if len(found) else None),
        count=len(found),
        missing=len(values) - len(found),
        total=total,
        squares=squares,
        timed=int(np.count_nonzero(has_time(found))) if kind == "date" else 0,
    )


def _image_summary(name: str, images: NDArray[np.generic]) -> ColumnSummary:
    told = ToldKind(kind="image", shape=images.shape[1:], pixel=images.dtype.name)
    return ColumnSummary(name=name, told=told, count=len(images), missing=0)


def _merged(parts: Mapping[str, ColumnSummary]) -> ColumnSummary:
    several = list(parts.values())
    pooled: Counter[str] = Counter()
    for part in several:
        pooled.update(part.categories)
    return ColumnSummary(
        name=several[0].name,
        told=common_kind(several[0].name, {party: part.told for party, part in parts.items()}),
        count=sum(part.count for part in several),
        missing=sum(part.missing for part in several),
        total=sum(part.total for part in several),
        squares=sum(part.squares for part in several),
        timed=sum(part.timed for part in several),
        categories=dict(pooled),
    )
