"""The active party: the labels, columns of its own, and the choice of every batch.

It adds to every slice of the embedding, so that no group's embedding stands alone in a sum.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vfedsec.crypto.pairs import Pair
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol import states
from vfedsec.protocol.interfaces import ABSENT_ROW, Batches, Floats, Rows
from vfedsec.protocol.messages import Batch, Envelope, Farewell, Finish, Member, Ready, Round, Share
from vfedsec.protocol.party import Party, PartySetup
from vfedsec.protocol.passive import ENVELOPE


class ActiveParty(Party):
    """See the module."""

    TRANSITIONS: ClassVar = states.ACTIVE_TRANSITIONS

    def __init__(self, setup: PartySetup, *, restarted: bool = False) -> None:
        self._batches: Batches | None = None
        super().__init__(setup, restarted=restarted)
        self._last_batch: Batch | None = None
        self._forwarded_round = 0
        self.outputs: dict[Batch, tuple[Rows, Floats]] = {}
        """Predictions that came back, by batch: row numbers and outputs."""

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
        )

    def _round(self, message: Round) -> Share:
        self._check_roster(message.roster)
        own_key_id = self._own_key_in(message.roster)
        self.secure.timed(lambda: self._learn(message.announcements))
        self._take_results(message)
        shares, clipped, labels, valid = self._forward(message, own_key_id)
        envelopes = self.secure.timed(lambda: self._envelopes(message, own_key_id))
        return Share(
            message.round_index,
            shares,
            clipped=clipped,
            labels=labels,
            valid=valid,
            envelopes=envelopes,
            announcement=self._announce_if_due(message.round_index, own_key_id),
        )

    def _forward(self, message: Round, own_key_id: bytes) -> tuple[dict[int, memoryview], int, memoryview | None, int]:
        """The masked slices of this party's embedding for every slice that has a partner, and the labels."""
        batch = message.batch
        if batch is None:
            return {}, 0, None, 0
        rows = self._rows(batch)
        embedding = self.model.forward(rows, training=batch.kind == "train")
        self._last_batch, self._forwarded_round = batch, message.round_index
        shares, clipped = {}, 0
        for index, members in self._by_slice(message.roster).items():
            pairs = self._timed_pairs(members, own_key_id)
            part = embedding[:, self.roles.slices[index]]
            words, count = self.secure.share(part, message.round_index, index, pairs)
            shares[index] = words.data
            clipped += count
        self.clipped += clipped
        valid = int(np.count_nonzero(rows != ABSENT_ROW))
        labels = None if batch.kind == "predict" else self.batches.labels(rows).astype("<f4").data
        return shares, clipped, labels, valid

    def _timed_pairs(self, members: list[Member], own_key_id: bytes) -> list[Pair]:
        pairs: list[Pair] = self.secure.timed(lambda: self._pairs_with(members, own_key_id))
        return pairs

    def _rows(self, batch: Batch) -> Rows:
        if not 0 <= batch.index < self.batches.count(batch.kind) or batch.epoch < 0:
            raise RemoteProtocolError(
                f"{self.name} has no batch {batch.index} of {batch.kind!r} in epoch {batch.epoch}"
            )
        return self.batches.rows(batch.kind, batch.epoch, batch.index)

    def _by_slice(self, roster: list[Member]) -> dict[int, list[Member]]:
        """The roster's passive parties by the slice they add to."""
        slices: dict[int, list[Member]] = {}
        for member in roster:
            if member.party != self.name:
                slices.setdefault(self.roles.slice_of(member.party), []).append(member)
        return slices

    def _envelopes(self, message: Round, own_key_id: bytes) -> dict[str, Envelope]:
        """The next batch, sealed for every passive party whose key is known, in the roster or not."""
        if message.next_batch is None:
            return {}
        rows = self._rows(message.next_batch)
        keys = {member.party: member.key_id for member in message.roster}
        envelopes = {}
        for party in self.roles.passive:
            key_id = keys.get(party) or self._keys.latest_of(party)
            if key_id is not None:
                round_index = message.round_index + 1
                body = self.batches.partner_rows(party, rows).astype("<i4").tobytes()
                seal = self._keys.pair(party, key_id, own_key_id).outgoing(ENVELOPE)
                sealed = memoryview(seal.seal(round_index, body))
                envelopes[party] = Envelope(round_index, own_key_id, key_id, sealed)
        return envelopes

    def _take_results(self, message: Round | Finish) -> None:
        if message.gradient is not None:
            gradient = self._read_gradient(message.gradient, self.roles.width)
            self._step(gradient, self._forwarded_round)
        if message.outputs is not None:
            self._take_outputs(message.outputs)
        self._forget_pending()

    def _take_outputs(self, raw: memoryview) -> None:
        batch = self._last_batch
        expected = 4 * self.roles.batch_size * self.job.output_width
        if batch is None or batch.kind != "predict" or len(raw) != expected:
            raise RemoteProtocolError(f"{self.name} cannot accept outputs it did not ask for")
        outputs = np.frombuffer(raw, "<f4").reshape(self.roles.batch_size, -1).copy()
        self.outputs[batch] = (self._rows(batch), outputs)

    def _finish(self, message: Finish) -> Farewell:
        self._take_results(message)
        return Farewell()
