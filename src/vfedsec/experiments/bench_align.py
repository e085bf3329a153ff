"""What an alignment costs beside bare calls of the library that does the curve, and what a second core brings.

Two made-up tables share half their ids. The sides talk in letters as in a run, without seals and frames; the bare calls
are the library's own four steps, for the same ids. All of it happens in this process, both sides included.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import private_set_intersection.python as psi

from vfedsec.data.alignment import ActiveAlignment, PassiveAlignment
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.curve import Curve, usable_cores
from vfedsec.data.letters import Letter, read, write
from vfedsec.data.pieces import rows_a_piece
from vfedsec.data.remembering import OrderMemory, PlacesMemory
from vfedsec.protocol.interfaces import ABSENT_ROW, Rows

DEFAULT_IDS = 100_000
_MOST_LAPS = 2
_IDS_A_RUN = 200_000
"""Laps beyond the first are worth their time up to so many ids in all."""

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work that stops after every step, to be timed."""


def run(ids: int = DEFAULT_IDS) -> dict[str, Any]:
    """All figures, for two tables of so many ids.

    Other work on the machine only ever adds to a time: of every step the fastest lap counts, and of CPU time that of
    the cheapest.
    """
    tables = _made_up(ids)
    laps = [_lap(*tables) for _ in range(min(_MOST_LAPS, max(_IDS_A_RUN // ids, 1)))]
    cpu = {name: min(lap.cpu[name] for lap in laps) for name in laps[0].cpu}
    wall = {name: float(np.min([lap.wall[name] for lap in laps], axis=0).sum()) for name in laps[0].wall}
    expected = _intersection(*tables)
    return {
        "ids": ids,
        "cores": usable_cores(),
        "laps": len(laps),
        "intersection_ok": all(np.array_equal(found, expected) for lap in laps for found in lap.found),
        "cpu_over_bare": cpu["parallel"] / cpu["bare"],
        "parallel_over_sequential": wall["parallel"] / wall["sequential"],
        "peak_mb": laps[0].peak_mb,
        **{f"{name}_s": seconds for name, seconds in wall.items()},
        **{f"{name}_cpu_s": seconds for name, seconds in cpu.items()},
    }


@dataclass
class _Lap:
    cpu: dict[str, float] = field(default_factory=dict)
    """Seconds by what was timed."""
    wall: dict[str, list[float]] = field(default_factory=dict)
    """Of each step."""
    found: list[Rows] = field(default_factory=list)
    """The passive party's row for each of the active party's ids, by every way that was timed."""
    peak_mb: float = 0.0
    """Of this process, after the alignment on all cores."""


def _made_up(ids: int) -> tuple[list[str], list[str]]:
    """The active and the passive party's ids; they share half, in different orders."""
    first = [f"customer-{number:09d}" for number in range(ids)]
    second = [f"customer-{number:09d}" for number in range(ids // 2, ids // 2 + ids)]
    np.random.default_rng(0).shuffle(second)
    return first, second


def _lap(active: list[str], passive: list[str]) -> _Lap:
    lap = _Lap()
    lap.found.append(_timed(lap, "parallel", _align(active, passive, Curve(usable_cores()))))
    lap.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lap.found.append(_timed(lap, "sequential", _align(active, passive, Curve())))
    shared = _timed(lap, "bare", _bare(active, passive))
    # It tells which of the active party's ids are shared, not with which rows.
    lap.found.append(np.full(len(active), ABSENT_ROW, np.int32))
    lap.found[-1][shared] = _intersection([active[row] for row in shared], passive)
    return lap


def _timed(lap: _Lap, name: str, steps: Steps[Result]) -> Result:
    cpu, wall = time.process_time(), [time.perf_counter()]
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            break
        finally:
            wall.append(time.perf_counter())
    lap.cpu[name] = time.process_time() - cpu
    lap.wall[name] = [end - start for start, end in pairwise(wall)]
    return result


def _align(active: list[str], passive: list[str], curve: Curve) -> Steps[Rows]:
    """The whole conversation."""
    one = ActiveAlignment(active, ["passive"], rows_a_piece(1), curve, PlacesMemory(active, None))
    memory = OrderMemory(passive, bytes(32), None, "active")
    other = PassiveAlignment(passive, "active", rows_a_piece(1), curve, memory)
    letter: Letter | None = one.begin()["passive"]
    while letter is not None:
        yield
        answer = _answered(other, _carried(letter))
        yield
        letter = _taken(one, answer)
    places = one.matched["passive"]
    return np.where(places == ABSENT_ROW, places, other.order[places])


def _carried(letter: Letter) -> Letter:
    return read("the other side", write(letter))


def _answered(side: PassiveAlignment, letter: Letter) -> Letter:
    match letter:
        case AlignmentOpening():
            return _carried(side.open(letter))
        case AlignmentRequest():
            return _carried(side.answer(letter))
    raise AssertionError(letter)


def _taken(side: ActiveAlignment, letter: Letter) -> Letter | None:
    match letter:
        case AlignmentOpened():
            return side.open("passive", letter)
        case AlignmentReply():
            return side.take("passive", letter)
    raise AssertionError(letter)


def _bare(active: list[str], passive: list[str]) -> Steps[list[int]]:
    """The library's four steps: which of the active party's ids are shared."""
    client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
    request = client.CreateRequest(active)
    yield
    setup = server.CreateSetupMessage(0.0, len(active), passive, psi.DataStructure.RAW)
    yield
    response = server.ProcessRequest(request)
    yield
    shared: list[int] = client.GetIntersection(setup, response)
    return shared


def _intersection(active: list[str], passive: list[str]) -> Rows:
    """The same in the plain."""
    rows = {one: row for row, one in enumerate(passive)}
    return np.array([rows.get(one, ABSENT_ROW) for one in active], np.int32)
