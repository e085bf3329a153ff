"""The active party: the labels, columns of its own, and the choice of every batch.

It adds to every slice of the embedding, so that no group's embedding stands alone in a sum. Steps in parentheses are
those of the paper's pipeline: (1) batch selection, (2) bottom model, (3) quantization, (4) masking, (5) gradient,
(6) update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vfedsec.crypto.pairs import Pair
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol import states
from vfedsec.protocol.interfaces import ABSENT_ROW, Batches, Floats, Rows
from vfedsec.protocol.messages import Batch, Envelope, Farewell, Finish, Ready, Round, Share
from vfedsec.protocol.party import Party, PartySetup
from vfedsec.protocol.passive import envelope_of
from vfedsec.protocol.seats import Seat


@dataclass(frozen=True)
class _Choice:
    """The rows of a batch, and every passive party's own numbers for them."""

    rows: Rows
    partners: dict[str, Rows]


class ActiveParty(Party):
    """See the module."""

    TRANSITIONS: ClassVar = states.ACTIVE_TRANSITIONS

    def __init__(self, setup: PartySetup, *, restarted: bool = False) -> None:
        self._batches: Batches | None = None
        self._chosen: dict[Batch, _Choice] = {}
        super().__init__(setup, restarted=restarted)
        self._last_batch: Batch | None = None
        self._forwarded_round = 0
        self._sealed_for: tuple[int, Batch | None] = (0, None)
        self._furthest: dict[str, tuple[int, int]] = {}
        self._bare: list[tuple[slice, Rows]] = []
        self.outputs: dict[int, Floats] = {}
        """Predictions that came back, by row number."""

    @property
    def batches(self) -> Batches:
        """Its choice of rows. Raises `LocalProtocolError` before the preparation is over."""
        if self._batches is None:
            raise LocalProtocolError(f"{self.name} has no batches yet: its preparation is not over")
        return self._batches

    def _ready(self, batches: Batches | None) -> Ready:
        if batches is None:
            raise LocalProtocolError(f"{self.name} is the active party, but its preparation chose no batches")
        self._batches = batches
        return Ready(
            train_batches=batches.count("train"),
            validation_batches=batches.count("validation"),
            test_batches=batches.count("test"),
            predict_batches=batches.count("predict"),
            predict_rows=sum(
                int(np.count_nonzero(batches.rows("predict", 0, index) != ABSENT_ROW))
                for index in range(batches.count("predict"))
            ),
            class_rows=batches.class_rows(self.job.task.class_count) if self.job.task.is_balanced else [],
        )

    def _round(self, message: Round) -> Share:
        seat = self.secure.timed(self._seats.take, "round", message.roster, message.announcements)
        self._check_key_in_use(seat.own_key_id)
        if message.batch is not None:
            self._check_turn(message.batch, message.round_index)
        self._take_results(message)
        shares, labels, valid = self._forward(message, seat)
        envelopes = self.secure.timed(self._envelopes, message, seat)  # (1) of the next round
        return Share(
            message.round_index,
            shares,
            labels=labels,
            valid=valid,
            envelopes=envelopes,
            announcement=self._announce_if_due(message.round_index, seat.own_key_id),
            predicted=len(self.outputs),
        )

    def _forward(self, message: Round, seat: Seat) -> tuple[dict[int, memoryview], memoryview | None, int]:
        """The masked slices of this party's embedding for every slice that has a partner, and the labels."""
        batch = message.batch
        if batch is None:
            return {}, None, 0
        choice = self._choice(batch)
        rows = choice.rows
        embedding = self.model.forward(rows, training=batch.kind == "train")  # (2)
        self._bare = self._not_held(choice, seat)
        for columns, alone in self._bare:
            embedding[alone, columns] = 0
        self._last_batch, self._forwarded_round = batch, message.round_index
        shares = {}
        for index, pairs in self._by_slice(seat).items():
            part = embedding[:, self.roles.slices[index]]
            shares[index] = self.secure.share(part, message.round_index, index, pairs).data  # (3), (4)
        valid = int(np.count_nonzero(rows != ABSENT_ROW))
        labels = None if batch.kind == "predict" else self.batches.labels(rows).astype("<f4").data
        return shares, labels, valid

    def _check_turn(self, batch: Batch, round_index: int) -> None:
        """Raises `RemoteProtocolError` unless this is the batch that was sealed for this round, for the first time.

        Two sums over the same rows with different parties in them, or over different rows of different parties, could
        give the aggregator single embeddings.
        """
        place = (batch.epoch, batch.index)
        if self._sealed_for != (round_index, batch) or place <= self._furthest.get(batch.kind, (-1, -1)):
            raise RemoteProtocolError(f"{self.name} cannot take batch {place} of {batch.kind!r} in round {round_index}")
        self._furthest[batch.kind] = place

    def _not_held(self, choice: _Choice, seat: Seat) -> list[tuple[slice, Rows]]:
        """For each slice the rows that nobody else in the roster holds: there this party's embedding would be bare."""
        slices: dict[int, list[Rows]] = {}
        for party in seat.pairs:
            slices.setdefault(self.roles.slice_of(party), []).append(choice.partners[party])
        bare = []
        for index, held in slices.items():
            alone = np.flatnonzero(np.maximum.reduce(held) == ABSENT_ROW)
            if len(alone):
                bare.append((self.roles.slices[index], alone.astype(np.int32)))
        return bare

    def _choice(self, batch: Batch) -> _Choice:
        if batch not in self._chosen:
            rows = self._rows(batch)
            partners = {party: self.batches.partner_rows(party, rows) for party in self.roles.passive}
            self._chosen = {batch: _Choice(rows, partners)}  # the next round asks for it again
        return self._chosen[batch]

    def _rows(self, batch: Batch) -> Rows:
        if not 0 <= batch.index < self.batches.count(batch.kind) or batch.epoch < 0:
            raise RemoteProtocolError(
                f"{self.name} has no batch {batch.index} of {batch.kind!r} in epoch {batch.epoch}"
            )
        return self.batches.rows(batch.kind, batch.epoch, batch.index)

    def _by_slice(self, seat: Seat) -> dict[int, list[Pair]]:
        """The roster's passive parties by the slice they add to."""
        slices: dict[int, list[Pair]] = {}
        for party, pair in seat.pairs.items():
            slices.setdefault(self.roles.slice_of(party), []).append(pair)
        return slices

    def _envelopes(self, message: Round, seat: Seat) -> dict[str, Envelope]:
        """The next batch, sealed for every passive party whose key is known, in the roster or not."""
        if message.next_batch is None:
            return {}
        choice = self._choice(message.next_batch)
        round_index = message.round_index + 1
        self._sealed_for = (round_index, message.next_batch)
        envelopes = {}
        for party in self.roles.passive:
            pair = seat.pairs.get(party) or self._latest_pair(party, seat.own_key_id)
            if pair is not None:
                body = choice.partners[party].astype("<i4", copy=False).tobytes()
                sealed = memoryview(pair.outgoing(envelope_of(message.next_batch.kind)).seal(round_index, body))
                envelopes[party] = Envelope(round_index, pair.own_key_id, pair.partner_key_id, sealed)
        return envelopes

    def _latest_pair(self, party: str, own_key_id: bytes) -> Pair | None:
        key_id = self._keys.latest_of(party)
        return None if key_id is None else self._keys.pair(party, key_id, own_key_id)

    def _take_results(self, message: Round | Finish) -> None:
        if message.gradient is not None:
            gradient = self._read_gradient(message.gradient, self.roles.width)  # (5)
            if self._bare:
                gradient = gradient.copy()
                for columns, alone in self._bare:
                    gradient[alone, columns] = 0
            self._step(gradient, self._forwarded_round)  # (6)
        if message.outputs is not None:
            self._take_outputs(message.outputs)
        self._forget_pending()

    def _take_outputs(self, raw: memoryview) -> None:
        batch = self._last_batch
        expected = 4 * self.roles.batch_size * self.job.output_width
        if batch is None or batch.kind != "predict" or len(raw) != expected:
            raise RemoteProtocolError(f"{self.name} cannot accept outputs it did not ask for")
        outputs = np.frombuffer(raw, "<f4").reshape(self.roles.batch_size, -1).copy()
        rows = self._rows(batch).tolist()
        self.outputs |= {row: values for row, values in zip(rows, outputs, strict=True) if row != ABSENT_ROW}

    def _finish(self, message: Finish) -> Farewell:
        self._take_results(message)
        return Farewell()
