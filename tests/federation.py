"""Small federations in memory, for tests: made-up rows, repeatable keys, scripted faults, and an oracle of sums."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from vfedsec import trace
from vfedsec.config.check import check_job
from vfedsec.config.job import Active, Dropout, Fusion, Group, Job, ModelSpec, Security, Top, Training
from vfedsec.config.job import Simulation as Faulty
from vfedsec.data.batches import TableBatches
from vfedsec.engines.faults import Fault, Faults
from vfedsec.engines.simulation import Options, PreparedParty, Simulation
from vfedsec.protocol.interfaces import ABSENT_ROW
from vfedsec.protocol.messages import BlindSum
from vfedsec.protocol.party import Party
from vfedsec.protocol.passive import PassiveParty
from vfedsec.protocol.secure_layer import SecureLayer
from vfedsec.protocol.switchboard import Exchange

ACTIVE = "active"
_FIRST_KEPT = 50


class Drbg:
    """Bytes that look random and repeat: SHA-256 of a seed and a counter."""

    def __init__(self, seed: object = 0) -> None:
        self._seed = repr(seed).encode()
        self._count = 0

    def __call__(self, length: int) -> bytes:
        blocks = []
        for _ in range(-(-length // 32)):
            self._count += 1
            blocks.append(hashlib.sha256(self._seed + self._count.to_bytes(8)).digest())
        return b"".join(blocks)[:length]

    def array(self, shape: tuple[int, ...], dtype: Any = np.uint32) -> np.ndarray:
        """As many random words."""
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(self(count), dtype).reshape(shape).copy()


def job_of(
    groups: Sequence[int] = (2, 1),
    *,
    fusion: str = "concat",
    mode: str = "secure",
    policy: str = "pad",
    rounds: int = 12,
    batch_size: int = 16,
    width: int = 4,
    word_bits: int = 32,
    rekey_every: int = 100,
    model: ModelSpec | None = None,
    training: Mapping[str, Any] | None = None,
    security: Mapping[str, Any] | None = None,
    drop: float = 0.0,
    deadline: float = 0.1,
    seed: int = 1,
) -> Job:
    """A job with so many parties in each group: `a0`, `a1`, … in the first, `b0`, … in the second."""
    model = model or ModelSpec()
    numbers = {"evaluate_every": 0, "learning_rate": 0.05} | dict(training or {})
    job = Job(
        name="test",
        seed=seed,
        active=Active(party=ACTIVE, columns=("x",), model=model),
        groups=tuple(
            Group(
                name=f"group-{letter}",
                parties=tuple(f"{letter}{index}" for index in range(size)),
                columns=("x",),
                width=width,
                model=model,
            )
            for letter, size in zip("abcdefgh", groups, strict=False)
        ),
        fusion=Fusion(kind=fusion),  # type: ignore[arg-type]
        top=Top(),
        training=Training(rounds=rounds, batch_size=batch_size, **numbers),
        security=Security(mode=mode, word_bits=word_bits, rekey_every=rekey_every, **(security or {})),  # type: ignore[arg-type]
        dropout=Dropout(policy=policy, deadline=deadline),  # type: ignore[arg-type]
        simulation=Faulty(drop_probability=drop),
    )
    check_job(job)
    return job


def in_mode(job: Job, mode: str) -> Job:
    """The same job, protected otherwise."""
    return msgspec.structs.replace(job, security=msgspec.structs.replace(job.security, mode=mode))


def rows_of(job: Job, *, rows: int = 160, columns: int = 3, seed: int = 0) -> dict[str, PreparedParty]:
    """Made-up features. In a group of several every row has one holder at most, and some have none."""
    return features_of(job, partner_rows(job, rows), rows=rows, columns=columns, seed=seed)


def partner_rows(job: Job, rows: int) -> dict[str, np.ndarray]:
    """Which row of each passive party is which of the active one's."""
    random = np.random.default_rng(len(job.passive_parties))
    partners = {}
    for group in job.groups:
        holders = random.integers(0, len(group.parties), rows)
        holders[random.random(rows) < 0.1] = -1
        for index, party in enumerate(group.parties):
            partners[party] = np.full(rows, ABSENT_ROW, np.int32)
            held = np.flatnonzero(holders == index)
            partners[party][held] = random.permutation(len(held))
    return partners


def features_of(
    job: Job, partners: Mapping[str, np.ndarray], *, rows: int, columns: int, seed: int
) -> dict[str, PreparedParty]:
    """Features drawn anew for the same people."""
    random = np.random.default_rng([7, seed])
    labels = np.random.default_rng(3).integers(0, 2, rows).astype(np.float32)

    def features(count: int) -> np.ndarray:
        return random.normal(size=(count, columns)).astype(np.float32)

    numbers = np.arange(rows, dtype=np.int32)
    kinds = {"train": numbers[: rows * 3 // 4], "test": numbers[rows * 3 // 4 :], "predict": numbers}
    kinds["validation"] = kinds["test"]
    ids = [f"person-{number}" for number in range(rows)]
    batches = TableBatches(job.training.batch_size, kinds, partners, labels=labels, ids=ids, seed=b"order")  # type: ignore[arg-type]
    held = {party: PreparedParty(features(max(int(own.max()) + 1, 1))) for party, own in partners.items()}
    return {job.active.party: PreparedParty(features(rows), batches), **held}


@dataclass(frozen=True)
class Heard:
    """What one party and the aggregator said to each other in one exchange."""

    exchange: Exchange
    party: str
    request: bytes
    reply: bytes | None


class Script(Faults):
    """Faults by plan: of each party the next strikes, and what arrives in place of its next request or reply."""

    def __init__(self) -> None:
        self.strikes: dict[str, list[Fault]] = {}
        self.requests: dict[str, Callable[[bytes], list[bytes]]] = {}
        self.replies: dict[str, Callable[[bytes], bytes]] = {}
        self.only: Callable[[Exchange], bool] = lambda exchange: True

    def clear(self) -> None:
        """Nothing goes wrong from here on."""
        self.__init__()  # type: ignore[misc]

    def lose(self, party: str, fault: Fault = Fault.BEFORE, *, times: int = 1) -> None:
        """Lose the party's next exchanges."""
        self.strikes.setdefault(party, []).extend([fault] * times)

    def strike(self, exchange: Exchange, party: str) -> Fault:
        planned = self.strikes.get(party)
        return planned.pop(0) if planned and self.only(exchange) else Fault.NONE

    def request(self, exchange: Exchange, party: str, data: bytes) -> list[bytes]:
        change = self.requests.pop(party, None) if self.only(exchange) else None
        return change(data) if change else [data]

    def reply(self, exchange: Exchange, party: str, data: bytes) -> bytes:
        change = self.replies.pop(party, None) if self.only(exchange) else None
        return change(data) if change else data


@dataclass
class SumOracle:
    """Checks every sum that the aggregator or a group makes against integers that were never masked.

    A twin of each party's Secure Layer, without masks, rounds the same floats with the same noise.
    """

    simulation: Simulation
    joined: int = 0
    """Slices checked."""
    applied: int = 0
    """Summed updates checked."""
    forward: dict[str, dict[int, tuple[int, np.ndarray]]] = field(default_factory=dict)
    """By party and slice: the round and the bare words of its last embedding."""
    first: dict[tuple[str, int, int], np.ndarray] = field(default_factory=dict)
    """By party, round and slice: the bare words of its first embeddings."""
    updates: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    """By party and round: the bare words of its parameter gradient."""

    def __post_init__(self) -> None:
        for party in self.simulation.engine.parties.values():
            self.watch(party)
        fusion = self.simulation.aggregator._conclusion._fusion
        join = fusion.join

        def checked(shares: Any, masking_sets: Any) -> Any:
            embedding, present = join(shares, masking_sets)
            self._check_join(embedding, present, masking_sets)
            return embedding, present

        fusion.join = checked  # type: ignore[method-assign]

    def watch(self, party: Any) -> None:
        """Listen to a party; again after a restart."""
        twin = self._twin(party)
        layer: SecureLayer = party.secure
        share, blind = layer.share, layer.blind

        def shared(values: Any, round_index: int, slice_index: int, pairs: Any) -> Any:
            words = twin.share(values, round_index, slice_index, pairs)
            self.forward.setdefault(party.name, {})[slice_index] = (round_index, words)
            if len(self.first) < _FIRST_KEPT:
                self.first[party.name, round_index, slice_index] = words
            return share(values, round_index, slice_index, pairs)

        def blinded(gradient: Any, round_index: int, pairs: Any, own_blind: Any) -> Any:
            words = twin.blind(gradient, round_index, pairs, own_blind)
            self.updates[party.name, round_index] = words
            return blind(gradient, round_index, pairs, own_blind)

        layer.share, layer.blind = shared, blinded  # type: ignore[method-assign]
        if isinstance(party, PassiveParty):
            self._watch_updates(party)

    def _watch_updates(self, party: PassiveParty) -> None:
        unblind, apply_sum = party.secure.unblind, party._apply_sum
        seen: list[np.ndarray] = []

        def unblinded(*args: Any) -> Any:
            seen.append(unblind(*args))
            return seen[-1]

        def applied(update: BlindSum) -> None:
            apply_sum(update)
            if not seen:
                return  # taken before, and passed over
            total = _total([self.updates[member.party, update.round_index] for member in update.members])
            expected = party.secure.formats.update.numbers.decode(total)
            assert np.array_equal(seen.pop(), expected), f"wrong update of round {update.round_index} in {party.name}"
            self.applied += 1

        party.secure.unblind, party._apply_sum = unblinded, applied  # type: ignore[method-assign]

    def _twin(self, party: Any) -> SecureLayer:
        job = in_mode(party.job, "insecure-integers")
        return SecureLayer(job, self.simulation._secrets.private_seed(party.name), float)

    def _check_join(self, embedding: np.ndarray, present: Sequence[bool], masking_sets: Any) -> None:
        numbers = self.simulation.active.secure.formats.embedding.numbers
        for index, columns in enumerate(self.simulation.roles.slices):
            found = embedding[:, columns]
            if not present[index]:
                assert not found.any()
                continue
            shares = [self.forward[party][index] for party in sorted(masking_sets[index])]
            assert len({round_index for round_index, _ in shares}) == 1
            expected = numbers.decode(_total([words for _, words in shares]))
            assert np.array_equal(found, expected), f"wrong sum in slice {index} of round {shares[0][0]}"
            self.joined += 1


def _total(shares: Sequence[np.ndarray]) -> np.ndarray:
    """The sum modulo the ring, by plain 64-bit integers."""
    dtype = shares[0].dtype
    total = np.sum([share.astype(np.uint64) for share in shares], axis=0, dtype=np.uint64)
    return (total % np.uint64(1 << (8 * dtype.itemsize))).astype(dtype)


class Federation:
    """A simulation with its script of faults, its transcript, its trace, and the oracle."""

    def __init__(
        self,
        job: Job,
        rows: Mapping[str, PreparedParty] | None = None,
        *,
        seed: object = 0,
        faults: Faults | None = None,
        watched: bool = True,
        keep: bool = True,
    ) -> None:
        self.job = job
        self.script = Script()
        self.heard: list[Heard] = []
        self.events: list[trace.Event] = []
        scripted = None if job.simulation.drop_probability else self.script
        options = Options(
            sink=self.events.append if keep else trace.ignore,
            faults=faults or scripted,
            tap=(lambda *what: self.heard.append(Heard(*what))) if keep else None,
            entropy=Drbg(seed),
        )
        self.simulation = Simulation.from_prepared(job, rows or rows_of(job), options)
        self.oracle = SumOracle(self.simulation) if watched and job.security.mode == "secure" else None
        self._exchange: Exchange | None = None
        self._program: Any = None

    @property
    def parties(self) -> Mapping[str, Any]:
        """By name."""
        return self.simulation.engine.parties

    def restart(self, name: str) -> Party:
        """Kill a party and start it again."""
        self.simulation.restart(name)
        party: Any = self.parties[name]
        if self.oracle:
            self.oracle.watch(party)
        return party

    # -- one exchange after the other --

    def start(self, program: Any = None) -> None:
        """Stand before the first exchange of a program; of the training, unless another is given."""
        self.simulation.prepare()
        self._program = self.simulation.aggregator.train() if program is None else program
        self._exchange = next(self._program)

    @property
    def next_exchange(self) -> Exchange:
        """What is about to be sent."""
        assert self._exchange is not None
        return self._exchange

    def step(self) -> bool:
        """One exchange; whether there is another."""
        try:
            self._exchange = self._program.send(self.simulation.engine.exchange(self.next_exchange))
        except StopIteration:
            self._exchange = None
        return self._exchange is not None

    def step_to(self, kind: str) -> None:
        """Stand before the next exchange of this kind."""
        self.step()
        while self.next_exchange.kind != kind:
            self.step()

    def train_rounds(self, count: int) -> list[trace.RoundEnded]:
        """So many more training rounds, and how each ended."""
        before = len(self.rounds())
        while len(self.rounds()) < before + count:
            assert self.step(), "the run ended"
        return self.rounds()[before:]

    # -- what happened --

    def rounds(self, kind: str = "train") -> list[trace.RoundEnded]:
        """How every round of a kind ended."""
        return [event for event in self.events if isinstance(event, trace.RoundEnded) and event.kind == kind]

    def outcomes(self) -> list[str]:
        """How every training round ended."""
        return [event.outcome for event in self.rounds()]

    def of_type(self, kind: type) -> list[Any]:
        """The events of a type."""
        return [event for event in self.events if isinstance(event, kind)]

    def weights(self) -> dict[str, bytes]:
        """Of every bottom model and the top."""
        top = self.simulation.aggregator._conclusion._top.dump()
        return {name: party.model.dump() for name, party in self.parties.items()} | {"top": top}


def started(groups: Sequence[int] = (2, 1), *, after: int = 3, **options: Any) -> Federation:
    """A federation that has trained some rounds and stands before another."""
    federation = Federation(job_of(groups, rounds=200, **options))
    federation.start()
    federation.train_rounds(after)
    if federation.next_exchange.kind != "train":
        federation.step_to("train")
    return federation


def trained(job: Job, **options: Any) -> Federation:
    """A federation after its whole run."""
    federation = Federation(job, **options)
    federation.simulation.train()
    return federation
