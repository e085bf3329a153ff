"""The numbers of a job, and the range each must lie in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from vfedsec.config.job import Job
from vfedsec.config.refusals import Refusal, shown

_MOST = 2**31 - 1


class _Range(NamedTuple):
    """Which numbers a key takes."""

    key: str
    expected: str
    holds: Callable[[float], bool]


def _whole(key: str, least: int, most: int) -> _Range:
    return _Range(key, f"a whole number from {least} to {most}", lambda number: least <= number <= most)


def _above_zero(key: str) -> _Range:
    return _Range(key, "a finite number above 0", lambda number: 0 < number < math.inf)


def _clip(key: str) -> _Range:
    # Beyond, scales and sums would leave what float32 holds.
    return _Range(key, "a number from 1e-6 to 1e6", lambda number: 1e-6 <= number <= 1e6)


_RANGES = (
    _whole("seed", 0, 2**63 - 1),
    _whole("training.epochs", 1, _MOST),
    _whole("training.rounds", 1, _MOST),
    _whole("training.batch_size", 2, 2**20),
    _Range("training.learning_rate", "a number above 0, at most 1000", lambda number: 0 < number <= 1000),
    _Range("training.momentum", "a number from 0 to less than 1", lambda number: 0 <= number < 1),
    _whole("training.evaluate_every", 0, _MOST),
    _Range("split.validation", "a fraction from 0 to less than 1", lambda number: 0 <= number < 1),
    _Range("split.test", "a fraction above 0 and less than 1", lambda number: 0 < number < 1),
    _whole("encoding.category_cap", 1, 2**16),
    _whole("security.rekey_every", 1, _MOST),
    _whole("security.range_bits", 2, 31),
    _clip("security.clip"),
    _clip("security.update_clip"),
    _above_zero("dropout.deadline"),
    _above_zero("dropout.patience"),
    _Range("simulation.drop_probability", "a number from 0 to 1", lambda number: 0 <= number <= 1),
    _Range("simulation.drop_proportion", "a number from 0 to 1", lambda number: 0 <= number <= 1),
)
_WIDTH = _whole("width", 1, 2**16)


def expected_number(key: str) -> str | None:
    """In words, what a key takes whose numbers are bounded."""
    words = {one.key: one.expected for one in _RANGES} | {"groups.width": _WIDTH.expected}
    return words.get(key)


def numbers_out_of_range(job: Job) -> Iterator[Refusal]:
    """Every single number that no job may have, whatever its other keys say."""
    for key, expected, holds in _RANGES:
        number = attrgetter(key)(job)
        if number is not None and not holds(number):
            yield Refusal(key, expected, shown(number))
    for index, group in enumerate(job.groups):
        if not _WIDTH.holds(group.width):
            yield Refusal(f"groups[{index}].width", _WIDTH.expected, shown(group.width))
