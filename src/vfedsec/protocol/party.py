"""What active and passive parties have in common: sessions, keys, the preparation, and one reply a request.

A party is a pure handler, `handle(request) -> reply`. It believes nothing that is not signed by a pinned identity or
authenticated under the session, answers a repeat of its last two requests with the very same bytes, and refuses
everything else that is older than the last exchange it saw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

import vfedsec
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR, Job
from vfedsec.crypto.keys import RUN_ID_BYTES, Announcement, Identity, PublicIdentity, RunContext
from vfedsec.crypto.pairs import derive
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol import session, states
from vfedsec.protocol.interfaces import Batches, BottomModel, Floats, Mail, Preparation
from vfedsec.protocol.keyring import Entropy, KeyRing
from vfedsec.protocol.letterbox import Letterbox
from vfedsec.protocol.messages import (
    Deliver,
    Farewell,
    Finish,
    Hello,
    Letter,
    Prepare,
    Ready,
    Reply,
    Request,
    Round,
    Update,
    Welcome,
    decode_request,
)
from vfedsec.protocol.messages import Mail as MailReply
from vfedsec.protocol.reply_cache import ReplyCache
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.seats import Seats
from vfedsec.protocol.secure_layer import SecureLayer

_MOST_ROUNDS = 1 << 62
_PREPARATION = "preparation"
_ROUNDS_TO_SWITCH = 8  # a lost reply or two in between


@dataclass(frozen=True, kw_only=True)
class PartySetup:
    """What a party is made of. Everything secret, random or timed in it comes from the engine."""

    job: Job
    name: str
    identity: Identity
    identities: Mapping[str, PublicIdentity]
    """The pinned public identities of all parties and of the aggregator."""
    preparation: Preparation
    private_seed: bytes = field(repr=False)
    """Secret; first weights, batch order and rounding noise come from it."""
    entropy: Entropy
    """Fresh random bytes, for keys."""
    clock: Callable[[], float] = float
    """Seconds, for metering only."""


class Party:
    """The common part; see `ActiveParty` and `PassiveParty`."""

    TRANSITIONS: ClassVar[dict[states.PartyState, dict[states.PartyEvent, states.PartyState]]]

    def __init__(self, setup: PartySetup, *, restarted: bool = False) -> None:
        """`restarted` if this party was prepared in this run before: it has its rows, and lost all else."""
        self.name = setup.name
        self.job = setup.job
        self.roles = Roles(setup.job)
        self.secure = SecureLayer(setup.job, setup.private_seed, setup.clock)
        self.state = states.PartyState.NEW
        self.model_round = 0
        self._setup = setup
        self._digest = job_digest(setup.job)
        self._keys = KeyRing(setup.name, setup.identity, setup.identities, setup.entropy, self.secure.scratch)
        self._channel: session.Channel | None = None
        self._is_committed = False
        self._cache = ReplyCache(setup.name)
        self._last_round = -1
        self._rounds_with_key = 0
        self._letters = Letterbox(setup.name, self._keys)
        self._has_begun = False
        self._seats = Seats(setup.name, self.roles.partners(setup.name), self._keys)
        self._model: BottomModel | None = None
        if restarted:
            self.state = states.PartyState.RESTARTED
            self._build()

    # -- frames --

    def handle(self, request: bytes) -> bytes:
        """The reply to one request. Raises `ProtocolError` or `CryptoError` for one that may not come; where the party
        stands in the tables is then what it was, but an authentic request has used up its exchange."""
        frame = session.parse(request)
        if frame.kind == session.SIGNED:
            return self._greet(frame, request)
        if self._channel is None:
            raise RemoteProtocolError(f"{self.name} cannot accept a request: nobody has greeted it")
        channel = self._channel
        self.secure.timed(channel.check, frame)
        self._is_committed = True
        repeated = self._cache.repeated(frame)
        if repeated is not None:
            return repeated
        message = decode_request(frame.body)
        following = self._next_state(message)
        self._cache.enter(frame)
        reply = self._answer(message)
        self.state = following
        data = self.secure.timed(channel.protect, frame.exchange, reply)
        self._cache.keep(frame, data)
        return data

    def _next_state(self, message: Request) -> states.PartyState:
        event = states.event_of(message)
        return states.next_state(self.TRANSITIONS, self.state, event, self.name)

    def _answer(self, message: Request) -> Reply:
        match message:
            case Deliver():
                return self._deliver(message)
            case Prepare():
                return self._build()
            case Round():
                self._enter(message.round_index)
                return self._round(message)
            case Update():
                return self._update(message)
            case Finish():
                return self._finish(message)
            case Hello():
                raise RemoteProtocolError(f"{self.name} cannot accept a greeting that is not signed")

    # -- greeting --

    def _greet(self, frame: session.Frame, request: bytes) -> bytes:
        session.check_signature(self._setup.identities[AGGREGATOR], frame)
        message = decode_request(frame.body)
        if not isinstance(message, Hello):
            raise RemoteProtocolError(f"{self.name} cannot accept a signed {type(message).__name__}")
        following = self._next_state(message)
        context = self._context_of(message)
        is_new_run = context != self._keys.context
        if not is_new_run:
            repeated = self._cache.repeated(frame)
            if repeated is not None:
                return repeated
        key = self._keys.fresh(message.round_index)
        self._channel = session.channel_with(key, message.public_key, context, self.name, at_party=True)
        self._cache.enter(frame)
        self._keys.begin(context)
        self._keys.adopt(key)
        self._rounds_with_key = 0
        if is_new_run:
            self._last_round = -1
        self._seats.clear()
        self._forget_pending()
        self.state = following
        welcome = Welcome(self._keys.announcement(), self.model_round, vfedsec.__version__)
        data = session.sign(self._setup.identity, frame.exchange, welcome, answering=request)
        self._cache.keep(frame, data)
        return data

    def _context_of(self, hello: Hello) -> RunContext:
        if hello.party != self.name:
            raise RemoteProtocolError(f"{self.name} cannot join: the greeting is for {hello.party!r}")
        if hello.job_digest != self._digest:
            raise RemoteProtocolError(f"{self.name} cannot join: the aggregator runs another job file")
        if _series(hello.version) != _series(vfedsec.__version__):
            raise RemoteProtocolError(
                f"{self.name} cannot join: expected version {vfedsec.__version__}, got {hello.version}"
            )
        if len(hello.run_id) != RUN_ID_BYTES or not 0 <= hello.round_index < _MOST_ROUNDS:
            raise RemoteProtocolError(f"{self.name} cannot join: the greeting names no proper run and round")
        old = self._keys.context
        # A greeting of some other run may be an old one, replayed: it binds once the session has carried a request.
        if self._is_committed and (hello.run_id != old.run_id or hello.incarnation < old.incarnation):
            raise RemoteProtocolError(f"{self.name} cannot join: it is part of another run")
        return RunContext(hello.run_id, hello.incarnation)

    # -- preparation --

    def _deliver(self, message: Deliver) -> MailReply:
        for announcement in message.announcements:
            self._keys.learn(announcement)
        outgoing: list[Letter] = []
        if not self._has_begun:
            self._has_begun = True
            outgoing += self._first_letters()
            outgoing += self._seal_mail(self._setup.preparation.begin())
        for letter in message.letters:
            outgoing += self._read_letter(letter)
        return MailReply(outgoing, *self._setup.preparation.progress())

    def _first_letters(self) -> list[Letter]:
        return []

    def _read_letter(self, letter: Letter) -> list[Letter]:
        if letter.purpose != _PREPARATION:
            raise RemoteProtocolError(f"{self.name} cannot accept a letter of purpose {letter.purpose!r}")
        body = self._letters.open(letter)
        return self._seal_mail(self._setup.preparation.receive(letter.sender, body))

    def _seal_mail(self, mail: Mail) -> list[Letter]:
        return [self._letters.seal(receiver, _PREPARATION, body) for receiver, body in mail]

    def _build(self) -> Ready:
        self._model, batches = self._setup.preparation.finish(self._model_seed())
        return self._ready(batches)

    def _ready(self, batches: Batches | None) -> Ready:
        return Ready()

    def _model_seed(self) -> bytes:
        return derive(self._setup.private_seed, "model", self.name)

    # -- rounds --

    @property
    def model(self) -> BottomModel:
        """This party's bottom model. Raises `LocalProtocolError` before it is built."""
        if self._model is None:
            raise LocalProtocolError(f"{self.name} has no model yet: its preparation is not over")
        return self._model

    def _enter(self, round_index: int) -> None:
        """Rounds only go forward: not even a key forgotten and told again masks two arrays for one round."""
        if not self._last_round < round_index < _MOST_ROUNDS:
            raise RemoteProtocolError(
                f"{self.name} cannot take part in round {round_index}: its last was round {self._last_round}"
            )
        self._last_round = round_index

    def _round(self, message: Round) -> Reply:
        raise NotImplementedError

    def _update(self, message: Update) -> Reply:
        raise RemoteProtocolError(f"{self.name} cannot accept an update: it is not one of several")

    def _finish(self, message: Finish) -> Farewell:
        raise NotImplementedError

    def _forget_pending(self) -> None:
        """Drop what waits for a gradient: the round it belongs to is lost to this party."""
        if self._model is not None:
            self._model.forget()

    def _read_gradient(self, raw: memoryview, width: int) -> Floats:
        """A gradient off the wire, (batch, width)."""
        expected = 4 * self.roles.batch_size * width
        if len(raw) != expected or self.state is not states.PartyState.FORWARDED:
            raise RemoteProtocolError(
                f"{self.name} cannot accept a gradient of {len(raw)} bytes in state {self.state.value!r}: "
                f"expected {expected} bytes after a training embedding"
            )
        gradient = np.frombuffer(raw, "<f4").reshape(-1, width)
        if not np.isfinite(gradient).all():
            raise RemoteProtocolError(f"{self.name} cannot accept a gradient that is not finite")
        return gradient

    def _step(self, gradient: Floats, round_index: int) -> None:
        """Complete the backward pass of the last embedding alone."""
        self.model.apply(self.model.backward(gradient))
        self.model_round = round_index

    def _check_key_in_use(self, key_id: bytes) -> None:
        """Raises `RemoteProtocolError` for a roster that keeps to an old key long after a new one was announced."""
        if key_id != self._keys.newest.key_id and self._rounds_with_key >= _ROUNDS_TO_SWITCH:
            raise RemoteProtocolError(
                f"{self.name} cannot take part with a key that it replaced {self._rounds_with_key} rounds ago"
            )

    def _announce_if_due(self, round_index: int, roster_key_id: bytes) -> Announcement | None:
        """Renew the key when its time has come, erase those nobody uses any more, and say the newest as long as the
        roster does not use it."""
        self._rounds_with_key += 1
        if self._rounds_with_key >= self.job.security.rekey_every and self._keys.newest.key_id == roster_key_id:
            self._rounds_with_key = 0
            self.secure.timed(self._keys.renew, round_index)
        if self._keys.retire_before(roster_key_id):
            self._seats.clear()
        if self._keys.newest.key_id == roster_key_id:
            return None
        return self.secure.timed(self._keys.announcement)


def _series(version: str) -> str:
    """What two sides must share: major and minor version."""
    return ".".join(version.split(".")[:2])
