"""One question, four answers: what the active party can do alone, what the federation adds when parties keep
dropping out, with padding and without, and what all columns in one place would give.

All four share the prepared rows, the held-out rows, the mini-batches, the optimizer and the number of rounds; the two
federations also draw the same faults.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import msgspec

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.engines.simulation import Simulation
from vfedsec.experiments.baselines import Baseline, train_alone, train_pooled
from vfedsec.experiments.history import HistoryRecorder, Point
from vfedsec.metrics import main_metric

Policy = Literal["pad", "discard"]
Name = Literal["alone", "pad", "discard", "pooled"]

Listen = Callable[[Name], trace.Sink]
"""Called as each of the four begins; what it returns hears of every event, of which only the federations have any."""


class Contestant(msgspec.Struct, frozen=True):
    """How one of the four ended."""

    metrics: dict[str, float]
    """On the test rows, after the last round."""
    rounds: int
    """Training rounds attempted."""
    rounds_used: int
    """Those that moved the model; the others were dropped."""
    bytes_moved: int
    """Between the aggregator and the parties in both directions, set-up and evaluations included."""
    setup_bytes: int
    """The part of them for greeting, alignment and encoding: spent once, counted for each federation."""
    seconds: float
    """Wall-clock time of training, all parties in one process, set-up not included."""
    history: tuple[Point, ...]
    """Every evaluation, in order."""


class Comparison(msgspec.Struct, frozen=True):
    """The four side by side."""

    metric: str
    """The one to compare by."""
    alone: Contestant | None
    """None when the active party has no columns of its own."""
    pad: Contestant
    discard: Contestant
    pooled: Contestant

    def contestants(self) -> dict[Name, Contestant]:
        """Those that took part, by name."""
        first: dict[Name, Contestant] = {} if self.alone is None else {"alone": self.alone}
        return {**first, "pad": self.pad, "discard": self.discard, "pooled": self.pooled}


def compare(simulation: Simulation, listen: Listen = lambda name: trace.ignore) -> Comparison:
    """Run all four on the rows that this simulation has prepared, or prepares now."""
    simulation.prepare()
    job, rows, allowed = simulation.job, simulation.rows, simulation.options.allowed_packages
    alone = None
    if job.active.columns:
        listen("alone")
        alone = _centralised(train_alone(job, rows, allowed))
    pad, discard = (_federated(simulation, policy, listen(policy)) for policy in ("pad", "discard"))
    listen("pooled")
    pooled = _centralised(train_pooled(job, rows, allowed))
    return Comparison(main_metric(job.task.kind)[0], alone, pad, discard, pooled)


def with_policy(job: Job, policy: Policy) -> Job:
    """The same job, treating rounds that lose a party in this way."""
    return msgspec.structs.replace(job, dropout=msgspec.structs.replace(job.dropout, policy=policy))


def _federated(prepared: Simulation, policy: Policy, sink: trace.Sink) -> Contestant:
    recorder = HistoryRecorder()
    options = replace(prepared.options, sink=trace.both(recorder, sink))
    simulation = prepared.again(with_policy(prepared.job, policy), options)
    simulation.prepare()
    setup_bytes = _setup_bytes(prepared)
    reused = _setup_bytes(simulation)  # its own greeting, in place of the whole set-up
    start = time.perf_counter()
    result = simulation.train()
    seconds = time.perf_counter() - start
    simulation.finish()
    return Contestant(
        metrics=result.metrics,
        rounds=result.tally.rounds,
        rounds_used=result.tally.trained + result.tally.padded,
        bytes_moved=result.meter.bytes_moved() - reused + setup_bytes,
        setup_bytes=setup_bytes,
        seconds=seconds,
        history=tuple(recorder.points),
    )


def _setup_bytes(simulation: Simulation) -> int:
    meter = simulation.engine.meter
    costs = [meter.of_kind(party, kind) for party in simulation.roles.parties for kind in ("hello", "mail", "prepare")]
    return sum(cost.bytes_sent + cost.bytes_received for cost in costs)


def _centralised(baseline: Baseline) -> Contestant:
    return Contestant(
        metrics=baseline.metrics,
        rounds=baseline.rounds,
        rounds_used=baseline.rounds,
        bytes_moved=0,
        setup_bytes=0,
        seconds=baseline.seconds,
        history=baseline.history,
    )
