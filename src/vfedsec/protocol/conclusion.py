"""What the aggregator makes of a round: the embedding, a step of the top model or an evaluation, and what to carry.

Steps in parentheses are those of the paper's pipeline: (4) unmasking by summation, (5) top model and gradient.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.errors import DataError
from vfedsec.protocol import messages as m
from vfedsec.protocol.evaluation import Pass
from vfedsec.protocol.fusion import Fusion
from vfedsec.protocol.incoming import Incoming
from vfedsec.protocol.interfaces import Floats, TopModel
from vfedsec.protocol.outgoing import Carry
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormats

Words = Mapping[int, NDArray[Any]]


@dataclass
class Tally:
    """How the training rounds ended."""

    trained: int = 0
    """With everybody."""
    padded: int = 0
    """With something missing."""
    dropped: int = 0
    """Not used."""

    @property
    def rounds(self) -> int:
        """All of them."""
        return self.trained + self.padded + self.dropped


@dataclass(frozen=True)
class RoundInput:
    """What a round asked for and what came."""

    round_index: int
    batch: m.Batch
    roster: tuple[m.Member, ...]
    """The passive parties."""
    shares: Mapping[str, Words]
    active: m.Share | None
    """The active party's reply, where the labels are."""


@dataclass(frozen=True)
class RoundOutput:
    """How a round ended."""

    outcome: trace.Outcome
    loss: float | None
    carry: Carry
    missing: tuple[str, ...]
    finished: Pass | None = None
    """The pass over held-out rows that this round completed."""


class Conclusion:
    """Joins, trains, evaluates."""

    def __init__(self, job: Job, roles: Roles, formats: ShareFormats, top: TopModel, incoming: Incoming) -> None:
        self.tally = Tally()
        self._job = job
        self._roles = roles
        self._top = top
        self._incoming = incoming
        self._fusion = Fusion(roles, formats.embedding)
        self._passes: dict[tuple[str, int], Pass] = {}

    def conclude(self, given: RoundInput, pass_batches: int) -> RoundOutput:
        """Use the round if the policy allows it. Raises `DataError` when its loss is not finite: nothing can follow."""
        names = [member.party for member in given.roster]
        missing = tuple(p for p in (self._roles.active, *names) if p not in given.shares)
        embedding, present = self._fusion.join(given.shares, self._masking_sets(names))  # (4)
        complete = all(present) and not missing and len(names) == len(self._roles.passive)
        usable = given.active is not None and any(present)
        if self._job.dropout.policy == "discard":
            usable = usable and complete
        carry = Carry(given.round_index)
        loss = None
        if usable and given.active is not None:
            if given.batch.kind == "train":
                loss = self._train(given, embedding, present, given.active, carry)  # (5)
            elif given.batch.kind == "predict":
                carry.outputs = self._top.predict(embedding, present)
        finished = self._evaluate(given, embedding, present, usable, pass_batches)
        outcome = self._count(given.batch, usable, complete)
        return RoundOutput(outcome, loss, carry, missing, finished)

    def _masking_sets(self, names: Sequence[str]) -> dict[int, frozenset[str]]:
        return {
            index: frozenset({self._roles.active, *(p for p in self._roles.sharing(index) if p in names)})
            for index in range(len(self._roles.slices))
        }

    def _train(
        self,
        given: RoundInput,
        embedding: Floats,
        present: tuple[bool, ...],
        active: m.Share,
        carry: Carry,
    ) -> float:
        labels = self._incoming.labels(active)
        loss, carry.gradient = self._top.train(embedding, present, labels, active.valid)
        if not math.isfinite(loss):
            raise DataError(
                f"the loss of round {given.round_index} is not finite: lower training.learning_rate, or scale the "
                "columns and labels"
            )
        carry.forwarded = tuple(member for member in given.roster if present[self._roles.slice_of(member.party)])
        return loss

    def _evaluate(
        self, given: RoundInput, embedding: Floats, present: tuple[bool, ...], usable: bool, batches: int
    ) -> Pass | None:
        """The pass over held-out rows that this batch ends, if it is one of these and the last."""
        batch, active = given.batch, given.active
        if batch.kind in ("train", "predict"):
            return None
        key = (batch.kind, batch.epoch)
        current = self._passes.setdefault(key, Pass(self._job.task.kind, batches))
        if usable and active is not None:
            outputs = self._top.predict(embedding, present)
            current.add(batch, self._incoming.labels(active)[: active.valid], outputs[: active.valid])
        else:
            current.lose()
        return self._passes.pop(key) if current.is_complete else None

    def _count(self, batch: m.Batch, usable: bool, complete: bool) -> trace.Outcome:
        if batch.kind != "train":
            return "evaluated" if usable else "dropped"
        if not usable:
            self.tally.dropped += 1
            return "dropped"
        if complete:
            self.tally.trained += 1
            return "trained"
        self.tally.padded += 1
        return "padded"
