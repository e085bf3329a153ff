"""What a run costs: CPU seconds and bytes, by party and kind of exchange, with the shares that security takes and
that clipping changes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from vfedsec.config.job import AGGREGATOR

cpu_clock = time.thread_time
"""CPU seconds of this thread: exact, and a system call each time."""

wall_clock = time.perf_counter
"""Seconds: ten times cheaper to read, for the many short stretches within a request."""


class Stopwatch:
    """CPU seconds of one stretch after the other: a single reading ends one and begins the next."""

    def __init__(self, clock: Callable[[], float] = cpu_clock) -> None:
        self._clock = clock
        self._since = clock()

    def lap(self) -> float:
        """CPU seconds since the last lap."""
        now = self._clock()
        seconds, self._since = now - self._since, now
        return seconds


@dataclass
class Cost:
    """Of one party in one kind of exchange."""

    exchanges: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    cpu_seconds: float = 0.0
    security_seconds: float = 0.0
    """The part of `cpu_seconds` spent on keys, masks, rounding, seals and frames."""
    values_rounded: int = 0
    """Numbers of embeddings and parameter gradients that became words."""
    values_clipped: int = 0
    """Those of them that were beyond the job's range."""

    def __iadd__(self, other: Cost) -> Cost:
        self.exchanges += other.exchanges
        self.bytes_sent += other.bytes_sent
        self.bytes_received += other.bytes_received
        self.cpu_seconds += other.cpu_seconds
        self.security_seconds += other.security_seconds
        self.values_rounded += other.values_rounded
        self.values_clipped += other.values_clipped
        return self

    @property
    def security_share(self) -> float:
        """The fraction of CPU time that security takes."""
        return self.security_seconds / self.cpu_seconds if self.cpu_seconds else 0.0

    @property
    def clipped_share(self) -> float:
        """The fraction of rounded values that had to be clipped."""
        return self.values_clipped / self.values_rounded if self.values_rounded else 0.0


PHASES = {
    "hello": "setup",
    "mail": "setup",
    "prepare": "setup",
    "plan": "setup",
    "train": "training",
    "update": "training",
    "validation": "evaluation",
    "test": "evaluation",
    "predict": "prediction",
    "finish": "finish",
}
"""Which phase of a run each kind of exchange belongs to."""


@dataclass
class Meter:
    """Costs by party and kind of exchange."""

    costs: defaultdict[str, defaultdict[str, Cost]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Cost))
    )

    def add(
        self,
        party: str,
        kind: str,
        *,
        sent: int = 0,
        received: int = 0,
        cpu: float = 0.0,
        security: float = 0.0,
        rounded: int = 0,
        clipped: int = 0,
    ) -> None:
        """Count what a party did in one exchange."""
        cost = self.costs[party][kind]
        cost.exchanges += 1
        cost.bytes_sent += sent
        cost.bytes_received += received
        cost.cpu_seconds += cpu
        cost.security_seconds += security
        cost.values_rounded += rounded
        cost.values_clipped += clipped

    def of_kind(self, party: str, kind: str) -> Cost:
        """What a party spent on one kind of exchange."""
        return self.costs[party][kind]

    def of_phase(self, party: str, phase: str) -> Cost:
        """What a party spent in one phase (see `PHASES`)."""
        total = Cost()
        for kind, cost in self.costs[party].items():
            if PHASES[kind] == phase:
                total += cost
        return total

    def total(self, party: str) -> Cost:
        """What a party spent in all."""
        total = Cost()
        for cost in self.costs[party].values():
            total += cost
        return total

    def bytes_moved(self) -> int:
        """Every byte between the aggregator and the parties, counted once."""
        cost = [self.total(party) for party in self.costs if party != AGGREGATOR]
        return sum(one.bytes_sent + one.bytes_received for one in cost)
