"""How far the alignment of all parties is, as a progress view shows it."""

from __future__ import annotations

from vfedsec import trace


class Aligned:
    """The latest word of every party."""

    def __init__(self) -> None:
        self._latest: dict[str, trace.Aligning] = {}

    def take(self, event: trace.Aligning) -> None:
        """Count an event."""
        self._latest[event.party] = event

    @property
    def share(self) -> float:
        """Of all rows there are to compare, those that have been; 1 if there are none. Parties are not believed to
        have done more than there is."""
        total = sum(event.total for event in self._latest.values())
        return sum(min(event.done, event.total) for event in self._latest.values()) / total if total else 1.0
