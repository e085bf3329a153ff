"""A whole federation in one process: aggregator, parties and engine, made from a job and the parties' tables.

    simulation = Simulation.from_files("demo/job.toml")
    result = simulation.train()

Parties without an identity or a seed of their own get one derived from the job's seed, so that a simulation repeats
exactly; ephemeral keys are fresh every time, and nothing depends on them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vfedsec import trace
from vfedsec.config.job import AGGREGATOR, Job, ModelSpec
from vfedsec.config.load import load_job
from vfedsec.config.networks import bottom_of, model_key
from vfedsec.config.party import PartyFile
from vfedsec.crypto.keys import RunContext
from vfedsec.crypto.pairs import derive
from vfedsec.data.curve import Curve, usable_cores
from vfedsec.data.prepared import BuildModel, PreparedRows
from vfedsec.data.table import Table
from vfedsec.engines import preparations
from vfedsec.engines.base import drive
from vfedsec.engines.faults import Faults, RandomDropouts
from vfedsec.engines.files import memory_of, party_files, table_of
from vfedsec.engines.given import check_complete, check_tables
from vfedsec.engines.local import LocalEngine, Tap
from vfedsec.engines.metering import Meter, cpu_clock, wall_clock
from vfedsec.engines.preparations import MakePreparation, Memories
from vfedsec.engines.secrets import Secrets
from vfedsec.errors import LocalProtocolError, naming
from vfedsec.models.bottom import build_bottom
from vfedsec.models.registry import check_networks
from vfedsec.models.top import TorchTop
from vfedsec.protocol.active import ActiveParty
from vfedsec.protocol.aggregator import Aggregator, AggregatorSetup, Program
from vfedsec.protocol.conclusion import Tally
from vfedsec.protocol.interfaces import ABSENT_ROW, Batches, BottomModel, Floats, Preparation
from vfedsec.protocol.keyring import Entropy
from vfedsec.protocol.party import Party, PartySetup
from vfedsec.protocol.passive import PassiveParty
from vfedsec.protocol.roles import Roles


@dataclass(frozen=True)
class PreparedParty:
    """What a party has after its preparation, as it would keep it on its disk."""

    features: Floats
    """Its encoded rows, (rows, columns)."""
    batches: Batches | None = None
    """The active party's choice of rows."""


@dataclass(frozen=True)
class Result:
    """How a training run ended."""

    metrics: dict[str, float]
    """On the test rows, after the last round."""
    history: tuple[trace.Evaluated, ...]
    """Every evaluation, in order."""
    tally: Tally
    meter: Meter


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a simulation may be given beside its job."""

    sink: trace.Sink = trace.ignore
    """Hears of every event."""
    faults: Faults | None = None
    """In place of those that the job's `[simulation]` asks for."""
    tap: Tap | None = None
    """Sees every request and reply."""
    entropy: Entropy = os.urandom
    """Where ephemeral keys come from."""
    curve: Curve = field(default_factory=lambda: Curve(usable_cores()))
    """What the parties align their rows with."""
    memory: Memories | None = None
    """Gives each party by name what it remembers by; without it, files say so, and tables remember nothing."""
    allowed_packages: tuple[str, ...] = ()
    """Packages whose networks and losses a job may name."""


class Simulation:
    """See the module."""

    def __init__(
        self,
        job: Job,
        make: MakePreparation,
        *,
        files: Mapping[str, tuple[PartyFile, Path]] | None = None,
        options: Options | None = None,
    ) -> None:
        self.job = job
        self.roles = Roles(job)
        self.options = options or Options()
        check_networks(job, self.options.allowed_packages)
        self.rows: dict[str, PreparedParty] = {}
        """What each party has kept of its preparation."""
        self._secrets = Secrets(job, files or {})
        self._make = make
        parties = {name: self._party(name) for name in self.roles.parties}
        self.engine = LocalEngine(
            parties,
            deadline=job.dropout.deadline,
            faults=self._faults(),
            tap=self.options.tap,
            cpu=lambda: cpu_clock() + self.options.curve.seconds_elsewhere,
        )
        self.aggregator = Aggregator(self._aggregator_setup())
        self._is_prepared = self._is_trained = False
        self._job_file = ""

    @classmethod
    def from_files(cls, path: Path | str, options: Options | None = None) -> Simulation:
        """From a job file whose `[parties]` name each party's own file."""
        path = Path(path)
        job = load_job(path)
        files = party_files(job, path)
        tables = {name: table_of(job, name, *file) for name, file in files.items()}
        with naming(file=str(path)):
            simulation = cls.from_tables(job, tables, files=files, options=options)
        simulation._job_file = str(path)
        return simulation

    @classmethod
    def from_tables(
        cls,
        job: Job,
        tables: Mapping[str, Table],
        *,
        files: Mapping[str, tuple[PartyFile, Path]] | None = None,
        options: Options | None = None,
    ) -> Simulation:
        """From one table a party."""
        check_tables(job, tables)
        options = options or Options()
        memories = options.memory or (lambda name: memory_of(name, files or {}, options.sink))
        make = preparations.from_tables(job, tables, options.curve, memories, options.entropy)
        return cls(job, make, files=files, options=options)

    @classmethod
    def from_prepared(cls, job: Job, rows: Mapping[str, PreparedParty], options: Options | None = None) -> Simulation:
        """From rows that are encoded and aligned already."""
        check_complete(job, rows, "prepared rows")

        def make(name: str, seed: bytes, build: BuildModel) -> Preparation:
            return _prepared(job, name, rows[name], build)

        return cls(job, make, options=options)

    def again(self, job: Job, options: Options | None = None) -> Simulation:
        """A new run over the same prepared rows, without aligning and encoding anew."""
        self.prepare()
        return Simulation.from_prepared(job, self.rows, options)

    # -- running --

    def prepare(self) -> None:
        """Greet, align, encode and build; `train` does it when it has not been done."""
        if not self._is_prepared:
            with naming(file=self._job_file):
                self.drive(self.aggregator.begin())
            self._is_prepared = True
            active = self.active
            kept = self.rows[active.name]
            self.rows[active.name] = PreparedParty(kept.features, active.batches)

    def train(self) -> Result:
        """All rounds of the job. Raises `LocalProtocolError` when called again: the method `again` makes a new run."""
        if self._is_trained:
            raise LocalProtocolError("this simulation has trained before: make a new one, or take again(job)")
        self.prepare()
        self._is_trained = True
        self.drive(self.aggregator.train())
        history = tuple(self.aggregator.evaluations)
        metrics = next((one.metrics for one in reversed(history) if one.kind == "test"), {})
        return Result(metrics, history, self.aggregator.tally, self.engine.meter)

    def predict(self) -> dict[str, Floats]:
        """The outputs for every aligned row of the active party, by id; only that party knows them."""
        self.prepare()
        self.active.outputs.clear()
        self.drive(self.aggregator.predict())
        by_row = self.active.outputs
        in_order = sorted(by_row)
        ids = self.active.batches.ids_of(np.array(in_order, np.int32))
        return {one: by_row[row] for one, row in zip(ids, in_order, strict=True)}

    def rows_held(self) -> dict[str, int]:
        """Of how many rows each party holds its columns, after the alignment; the active party of all that are used.

        Raises `LocalProtocolError` before the preparation."""
        batches = self.active.batches
        passes = [batches.rows("predict", 0, index) for index in range(batches.count("predict"))]
        used = np.concatenate([np.empty(0, np.int32), *(rows[rows != ABSENT_ROW] for rows in passes)])
        held = {party: batches.partner_rows(party, used) for party in self.roles.passive}
        return {self.roles.active: len(used)} | {
            party: int(np.count_nonzero(rows != ABSENT_ROW)) for party, rows in held.items()
        }

    def finish(self) -> None:
        """Tell everybody that the run is over."""
        self.drive(self.aggregator.finish())

    def drive(self, program: Program) -> Any:
        """Run one of the aggregator's programs on this simulation's engine."""
        return drive(program, self.engine)

    @property
    def active(self) -> ActiveParty:
        """The active party."""
        party = self.engine.parties[self.roles.active]
        assert isinstance(party, ActiveParty)
        return party

    def restart(self, name: str) -> None:
        """Kill a party and start it again: it has its prepared rows, and has lost keys, session and model."""
        self._make = self._make_again
        self.engine.parties[name] = self._party(name, restarted=True)

    # -- making --

    def _make_again(self, name: str, seed: bytes, build: BuildModel) -> Preparation:
        return _prepared(self.job, name, self.rows[name], build)

    def _party(self, name: str, *, restarted: bool = False) -> Party:
        seed = self._secrets.private_seed(name)
        setup = PartySetup(
            job=self.job,
            name=name,
            identity=self._secrets.identity(name),
            identities=self._secrets.identities,
            preparation=self._make(name, seed, lambda *args: self._build(name, *args)),
            private_seed=seed,
            entropy=self.options.entropy,
            clock=wall_clock,
        )
        kind = ActiveParty if name == self.roles.active else PassiveParty
        return kind(setup, restarted=restarted)

    def check_network(self, name: str, columns: int) -> None:
        """Raises `ConfigError` unless this party's bottom model can be made for so many encoded columns."""
        width, spec = bottom_of(self.job, name)
        self._bottom(name, np.zeros((1, columns), np.float32), width, spec, b"")

    def _build(self, name: str, features: Floats, width: int, spec: ModelSpec, seed: bytes) -> BottomModel:
        self.rows[name] = PreparedParty(features, self.rows.get(name, _NOTHING).batches)
        return self._bottom(name, features, width, spec, seed)

    def _bottom(self, name: str, features: Floats, width: int, spec: ModelSpec, seed: bytes) -> BottomModel:
        with naming(key=model_key(self.job, name)):
            return build_bottom(
                features,
                width,
                spec,
                seed,
                self.job.training,
                self.roles.is_replicated(name),
                self.options.allowed_packages,
            )

    def _aggregator_setup(self) -> AggregatorSetup:
        top_seed = derive(self._secrets.job_seed, "top model")
        return AggregatorSetup(
            job=self.job,
            top=TorchTop(self.job, list(self.roles.slices), top_seed, self.options.allowed_packages),
            identity=self._secrets.identity(AGGREGATOR),
            identities=self._secrets.identities,
            context=RunContext(self.options.entropy(16), 0),
            entropy=self.options.entropy,
            sink=self.options.sink,
        )

    def _faults(self) -> Faults:
        if self.options.faults is not None:
            return self.options.faults
        if self.job.simulation.drop_probability:
            return RandomDropouts(self.job.simulation, self.roles.passive, self.job.seed)
        return Faults()


_NOTHING = PreparedParty(np.empty((0, 0), np.float32))


def _prepared(job: Job, name: str, kept: PreparedParty, build: BuildModel) -> Preparation:
    return PreparedRows(kept.features, *bottom_of(job, name), build, kept.batches)
