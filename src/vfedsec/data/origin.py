"""Whose rows something is about, and where they came from: what every message about data begins with."""

from __future__ import annotations

from dataclasses import dataclass

from vfedsec.errors import DataError


@dataclass(frozen=True)
class Origin:
    """A party and its source."""

    party: str
    source: str

    def error(self, message: str, *, column: str = "", row: int | None = None) -> DataError:
        """An error that says where: party, source, column, row (given from 0, told from 1)."""
        place = [f"party {self.party}", self.source]
        if column:
            place.append(f"column {column!r}")
        if row is not None:
            place.append(f"data row {row + 1}")
        return DataError(f"{', '.join(place)}: {message}")
