"""What the cells of a column are kept as: texts, numbers, points in time or pixels, in arrays of one type.

A million texts are a million small numbers and the different texts once. Nothing here says how a column is read;
that is for `columns`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = -1
"""The code of a text that is missing."""


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts."""

    codes: NDArray[np.int32]
    """For every row the place of its text among the words, or `MISSING`."""
    words: tuple[str, ...]
    """The different texts."""

    @classmethod
    def of(cls, cells: Iterable[str | None]) -> Texts:
        """From one text a row, `None` where it is missing."""
        places: dict[str, int] = {}
        codes = [MISSING if cell is None else places.setdefault(cell, len(places)) for cell in cells]
        return cls(np.array(codes, dtype=np.int32), tuple(places))

    def __len__(self) -> int:
        return len(self.codes)

    def cells(self, rows: slice = slice(None)) -> list[str | None]:
        """One text a row, `None` where it is missing."""
        return [None if code == MISSING else self.words[code] for code in self.codes[rows].tolist()]

    def spread(self, by_word: NDArray[Any], missing: object) -> NDArray[Any]:
        """For every row what stands for its word."""
        # What is missing has the code -1, which leads to the last entry.
        return np.append(by_word, np.array([missing], dtype=by_word.dtype))[self.codes]

    def first_row_of(self, is_wanted: NDArray[np.bool_]) -> int | None:
        """The first row whose word is one of those."""
        rows = self.spread(is_wanted, False)
        return int(rows.argmax()) if rows.any() else None

    def counts(self) -> dict[str, int]:
        """How often each word occurs."""
        found = np.bincount(self.codes[self.codes != MISSING], minlength=len(self.words))
        return dict(zip(self.words, found.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Dates:
    """A column of points in time."""

    seconds: NDArray[np.float64]
    """Since the beginning of 1970, UTC; NaN where missing."""

    def __len__(self) -> int:
        return len(self.seconds)


Column = Texts | Dates | NDArray[Any]
"""Texts, dates, numbers with NaN where missing (rows,), or pixels (rows, height, width) or (rows, height, width,
channels)."""


def number_text(value: float) -> str:
    """A number as it would stand in a file: whole ones without a point."""
    return str(int(value)) if value.is_integer() else repr(value)
