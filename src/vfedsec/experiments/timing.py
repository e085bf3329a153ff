"""Timing two or more things fairly on a noisy machine: alternate them in one run, and compare medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def alternate(work: Mapping[str, Callable[[], object]], *, laps: int, inner: int = 1) -> dict[str, list[float]]:
    """Seconds a call of each piece of work, lap by lap; every lap does each of them `inner` times."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for call in work.values():
        call()
    for _ in range(laps):
        for name, call in work.items():
            start = time.perf_counter()
            for _ in range(inner):
                call()
            seconds[name].append((time.perf_counter() - start) / inner)
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """The median over laps of one time divided by the other: what disturbs a lap disturbs both."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def micros(seconds: list[float]) -> float:
    """The median in microseconds."""
    return 1e6 * statistics.median(seconds)
