"""The aggregator's voice, for tests that say what they like to whom they like, with keys that are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from federation import ACTIVE, Federation
from vfedsec.protocol import messages as m
from vfedsec.protocol.messages import Batch, Deliver, Envelope, Finish, Member, Round, Share, Update

EVERYBODY = (ACTIVE, "a0", "a1", "b0")
TRAIN = Batch("train", 0, 0)


class Deputy:
    """Speaks in the aggregator's sessions; keeps whatever a round leaves for the next."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.roles = federation.simulation.roles
        self.board = federation.simulation.aggregator._board
        self.membership = federation.simulation.aggregator._membership
        self.round_index = 0
        self.envelopes: dict[str, Envelope] = {}
        self.sealed = TRAIN
        """The batch of the envelopes; its epoch is another one every time, since no batch may come twice."""

    def party(self, name: str) -> Any:
        """The party itself."""
        return self.federation.parties[name]

    # -- the way to a round --

    def greet(self, *names: str) -> None:
        """Begin, or begin again."""
        newest = max(self.membership._standings[name].issued_round for name in names)
        exchange = self.board.exchange("hello", {}, max(self.round_index, newest + 1), greet=names)
        for name in names:
            welcome = self.board.welcome(name, self.party(name).handle(exchange.requests[name]))
            self.membership.welcomed(name, welcome.announcement, welcome.model_round)

    def carry_letters(self) -> None:
        """Until nobody has any."""
        boxes: dict[str, list[m.Letter]] = {name: [] for name in self.roles.parties}
        while boxes:
            mail = {name: self.ask(name, Deliver(letters, self.news(name))) for name, letters in boxes.items()}
            boxes = {}
            for reply in mail.values():
                for letter in reply.letters:
                    boxes.setdefault(letter.receiver, []).append(letter)

    def build(self) -> None:
        """Everything before the first round, as the aggregator itself does it."""
        self.federation.simulation.prepare()

    # -- messages --

    def news(self, name: str) -> list[Any]:
        """Every key that the party may need."""
        return self.membership.news_for(name)

    def members(self, names: Sequence[str]) -> list[Member]:
        """With their newest keys."""
        return [self.membership.member(name) for name in names]

    def plan(self, batch: Batch = TRAIN) -> Round:
        """For the active party: envelopes for the next round."""
        self.round_index += 1
        if (batch.epoch, batch.index) == (0, 0):
            batch = Batch(batch.kind, self.sealed.epoch + 1, 0)
        self.sealed = batch
        return Round(self.round_index, next_batch=batch, roster=self.members([ACTIVE]), announcements=self.news(ACTIVE))

    def make_envelopes(self, batch: Batch = TRAIN) -> None:
        """Have the active party seal the next batch for everybody, and stand in the next round."""
        self.envelopes = self.ask(ACTIVE, self.plan(batch)).envelopes
        self.round_index += 1

    def round_for(self, name: str, *, batch: Batch = TRAIN, **changes: Any) -> Round:
        """An honest round for one party; `changes` make it another one."""
        roster = self.roles.parties if name == ACTIVE else (ACTIVE, *self.roles.sharing(self.roles.slice_of(name)))
        fields = {
            "round_index": self.round_index,
            "batch": self.sealed if batch == Batch(self.sealed.kind, 0, 0) else batch,
            "roster": self.members(roster),
            "announcements": self.news(name),
            "envelope": self.envelopes.get(name),
        }
        return Round(**(fields | changes))

    def gradient(self, name: str) -> memoryview:
        """A gradient for this party's columns, all zeros."""
        width = self.roles.width if name == ACTIVE else self.roles.slice_width(self.roles.slice_of(name))
        return memoryview(bytes(4 * self.roles.batch_size * width))

    def update_for(self, name: str, **changes: Any) -> Update:
        """An honest request for a blinded update."""
        members = self.roles.group_of(name).parties
        fields = {
            "round_index": self.round_index,
            "members": self.members(members),
            "gradient": self.gradient(name),
        }
        return Update(**(fields | changes))

    def finish(self) -> Finish:
        """The end."""
        return Finish("finished", self.round_index)

    # -- saying them --

    def frame(self, name: str, request: m.Request) -> bytes:
        """A request as it travels."""
        return self.board.exchange("any", {name: request}, self.round_index).requests[name]

    def ask(self, name: str, request: m.Request) -> Any:
        """The party's reply."""
        reply = self.party(name).handle(self.frame(name, request))
        return self.board.read(name, reply, m.Reply)  # type: ignore[arg-type]

    def forward(self, *names: str, batch: Batch = TRAIN) -> dict[str, Share]:
        """Have envelopes made, then one round with these parties."""
        self.make_envelopes(batch)
        return {name: self.ask(name, self.round_for(name, batch=batch)) for name in names}
