"""What is kept of a run: its numbers, and enough beside them to get the same ones again."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import msgspec

from vfedsec import __version__
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR, Job
from vfedsec.engines.metering import PHASES, Cost, Meter
from vfedsec.engines.simulation import Result
from vfedsec.experiments.comparison import Comparison, Contestant


def provenance(job: Job) -> dict[str, Any]:
    """Which job, which seed, which versions."""
    return {
        "job": job.name,
        "job_digest": job_digest(job).hex(),
        "seed": job.seed,
        "vfedsec": __version__,
        "torch": version("torch"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def run_report(job: Job, result: Result, seconds: float) -> dict[str, Any]:
    """A training run."""
    return {
        "metrics": result.metrics,
        "rounds": msgspec.to_builtins(result.tally),
        "bytes": result.meter.bytes_moved(),
        "seconds": seconds,
        "parties": _costs(result.meter, (AGGREGATOR, job.active.party, *job.passive_parties)),
        "history": msgspec.to_builtins(result.history),
        "provenance": provenance(job),
    }


def comparison_summary(comparison: Comparison) -> dict[str, dict[str, float]]:
    """The numbers that people compare."""
    return {name: _summary(one, comparison.metric) for name, one in comparison.contestants().items()}


def comparison_report(job: Job, comparison: Comparison) -> dict[str, Any]:
    """Everything about a comparison."""
    return {"comparison": msgspec.to_builtins(comparison), "provenance": provenance(job)}


def _summary(one: Contestant, metric: str) -> dict[str, float]:
    return {
        metric: one.metrics[metric],
        "rounds": one.rounds,
        "rounds_used": one.rounds_used,
        "bytes": one.bytes_moved,
        "seconds": one.seconds,
    }


def _costs(meter: Meter, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: {
            **_cost(meter.total(name)),
            "phases": {phase: _cost(meter.of_phase(name, phase)) for phase in dict.fromkeys(PHASES.values())},
            "kinds": {kind: _cost(cost) for kind, cost in meter.costs[name].items()},
        }
        for name in names
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {**msgspec.to_builtins(cost), "security_share": cost.security_share, "clipped_share": cost.clipped_share}
