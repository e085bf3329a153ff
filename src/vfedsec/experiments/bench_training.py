"""What security costs a whole training run, in time and in bytes, on the jobs of `bench_jobs`.

Three runs of the same network alternate in one process: `secure`, `insecure-plain` (no masks, no rounding, float32,
everything else the same) and one bare torch loop without any federation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import torch

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.data.demo import write_demo
from vfedsec.engines.simulation import Options, PreparedParty, Simulation
from vfedsec.experiments.bench_jobs import (
    BATCH,
    bank_job,
    bare_loop,
    concat_job,
    made_up_rows,
    with_security,
)
from vfedsec.experiments.timing import alternate, median_ratio

Rows = dict[str, PreparedParty]

ROUNDS_A_LAP = 100  # as many as between two keys, so that every lap renews them once


def run(laps: int = 20) -> dict[str, dict[str, float]]:
    """All figures of both jobs, and what 16-bit words do to the demo; on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {
            "concat": measure(concat_job(), laps),
            "bank": measure(bank_job(), laps),
            "demo": demo_with_half_words(),
        }
    finally:
        torch.set_num_threads(threads)


class Runner:
    """A simulation that trains so many rounds at a time."""

    def __init__(self, job: Job, rows: Rows) -> None:
        self.rounds: list[trace.RoundEnded] = []
        self.simulation = Simulation.from_prepared(job, rows, Options(sink=self._hear))
        self.simulation.prepare()
        self._program = self.simulation.aggregator.train()
        self._exchange = next(self._program)

    def _hear(self, event: trace.Event) -> None:
        if isinstance(event, trace.RoundEnded):
            self.rounds.append(event)

    def train(self, rounds: int) -> None:
        """Go on until so many more rounds have ended."""
        goal = len(self.rounds) + rounds
        while len(self.rounds) < goal:
            self._exchange = self._program.send(self.simulation.engine.exchange(self._exchange))

    def bytes_a_round(self, party: str) -> tuple[float, float]:
        """Bytes up and down, an average over all rounds."""
        cost = self.simulation.engine.meter.of_phase(party, "training")
        rounds = len(self.rounds)
        return cost.bytes_sent / rounds, cost.bytes_received / rounds

    def security_share(self) -> float:
        """The instrumented share of the parties' CPU time in training that security takes."""
        meter, parties = self.simulation.engine.meter, self.simulation.roles.parties
        costs = [meter.of_phase(party, "training") for party in parties]
        return sum(c.security_seconds for c in costs) / sum(c.cpu_seconds for c in costs)


def measure(job: Job, laps: int) -> dict[str, float]:
    """The figures of one job."""
    rows = made_up_rows(job)
    secure = Runner(with_security(job, mode="secure", rekey_every=ROUNDS_A_LAP), rows)
    plain = Runner(with_security(job, mode="insecure-plain"), rows)
    half = Runner(with_security(job, word_bits=16), rows)
    bare = bare_loop(job, rows)
    work: dict[str, Callable[[], None]] = {
        "secure": lambda: secure.train(ROUNDS_A_LAP),
        "plain": lambda: plain.train(ROUNDS_A_LAP),
        "bare": lambda: bare(ROUNDS_A_LAP),
    }
    seconds = alternate(work, laps=laps)
    half.train(ROUNDS_A_LAP)
    per_second = {name: ROUNDS_A_LAP / median(laps) for name, laps in seconds.items()}
    return {
        "secure_over_plain": median_ratio(seconds["plain"], seconds["secure"]),
        "plain_over_bare": median_ratio(seconds["bare"], seconds["plain"]),
        "exchanges_per_round": _most_exchanges(secure),
        **_bytes(secure),
        "bytes16_over_bytes32": _upload(half) / _upload(secure),
        "rounds_per_second_secure": per_second["secure"],
        "rounds_per_second_plain": per_second["plain"],
        "rounds_per_second_bare": per_second["bare"],
        "security_share_of_party_cpu": secure.security_share(),
    }


def _most_exchanges(runner: Runner) -> float:
    return float(max(ended.exchanges for ended in runner.rounds))


def _upload(runner: Runner) -> float:
    return sum(runner.bytes_a_round(party)[0] for party in runner.simulation.roles.passive)


def _bytes(runner: Runner) -> dict[str, float]:
    """The worst passive party's bytes a round over what it must move: embedding up, gradient down, row numbers; and
    over the same with the blinded updates that a group of several sends and gets back."""
    roles = runner.simulation.roles
    bare, counted = [], []
    for party in roles.passive:
        moved = sum(runner.bytes_a_round(party))
        payload = BATCH * roles.slice_width(roles.slice_of(party)) * 4 * 2 + BATCH * 4
        updates = 2 * 4 * _parameters(runner, party) if roles.is_replicated(party) else 0
        bare.append(moved / payload)
        counted.append(moved / (payload + updates))
    return {
        "passive_bytes_over_payload": max(bare),
        "passive_bytes_over_payload_with_updates": max(counted),
    }


def _parameters(runner: Runner, party: str) -> int:
    model: Any = runner.simulation.engine.parties[party]
    return int(model.model.size)


def demo_with_half_words() -> dict[str, float]:
    """The final AUC of the demo with words of 32 and of 16 bits."""
    with tempfile.TemporaryDirectory() as folder:
        simulation = Simulation.from_files(write_demo(Path(folder)))
        full = simulation.train()
        security = msgspec.structs.replace(simulation.job.security, word_bits=16)
        job = msgspec.structs.replace(simulation.job, security=security)
        half = simulation.again(job).train()
    return {
        "auc32": full.metrics["auc"],
        "auc16": half.metrics["auc"],
        "auc_moves": abs(full.metrics["auc"] - half.metrics["auc"]),
    }
