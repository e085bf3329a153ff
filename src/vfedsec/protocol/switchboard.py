"""The aggregator's side of every session: greetings, frames out, replies in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import vfedsec
from vfedsec.crypto.keys import (
    Announcement,
    EphemeralKey,
    Identity,
    PublicIdentity,
    RunContext,
    check_announcement,
    check_usable,
)
from vfedsec.errors import CryptoError, ProtocolError, RemoteProtocolError
from vfedsec.protocol import session
from vfedsec.protocol.keyring import Entropy
from vfedsec.protocol.messages import Hello, Reply, Request, Welcome, decode_reply

ReplyType = TypeVar("ReplyType", bound=Reply)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Exchange:
    """One request to every party that takes part; an engine sends them and brings back what came in time."""

    number: int
    kind: str
    """For metering and display: the name of what is asked of most."""
    requests: dict[str, bytes]
    awaited: frozenset[str]
    """Whom to wait for until the deadline; the replies of others count if they are there by then."""
    round_index: int
    training: bool = False
    delay: float = 0.0
    """Seconds to wait before sending."""

    def again(self, parties: Collection[str], delay: float) -> Exchange:
        """The same bytes once more, for those who have not answered."""
        requests = {party: self.requests[party] for party in parties}
        return replace(self, requests=requests, awaited=frozenset(parties), delay=delay)


@dataclass(frozen=True)
class Replies:
    """What came before the deadline."""

    received: Mapping[str, bytes]
    gone: Mapping[str, str] = field(default_factory=dict)
    """Parties known not to answer, with the reason: the engine need not wait for a deadline to say so."""
    now: float = 0.0
    """The engine's clock, in seconds."""


class Switchboard:
    """Channels to all parties, and the number of the exchange."""

    def __init__(
        self,
        identity: Identity,
        identities: Mapping[str, PublicIdentity],
        context: RunContext,
        job_digest: bytes,
        entropy: Entropy,
    ) -> None:
        self.context = context
        self._identity = identity
        self._identities = identities
        self._digest = job_digest
        self._entropy = entropy
        self._channels: dict[str, session.Channel] = {}
        self._greetings: dict[str, tuple[EphemeralKey, bytes]] = {}
        self._exchange = 0

    @property
    def count(self) -> int:
        """How many exchanges there have been."""
        return self._exchange

    def exchange(
        self,
        kind: str,
        requests: Mapping[str, Request],
        round_index: int,
        *,
        greet: Iterable[str] = (),
        training: bool = False,
        delay: float = 0.0,
    ) -> Exchange:
        """Frame requests, and greet parties beside them; the greeted ones are waited for only if nobody else is."""
        self._exchange += 1
        number = self._exchange
        frames = {party: self._channels[party].protect(number, message) for party, message in requests.items()}
        for party in greet:
            frames[party] = self._greeting(party, round_index)
        awaited = frozenset(requests or frames)
        return Exchange(number, kind, frames, awaited, round_index, training, delay)

    def _greeting(self, party: str, round_index: int) -> bytes:
        key = EphemeralKey(self._entropy(32), round_index)
        hello = Hello(
            party,
            self.context.run_id,
            self.context.incarnation,
            round_index,
            self._digest,
            vfedsec.__version__,
            key.public,
        )
        data = session.sign(self._identity, self._exchange, hello)
        self._greetings[party] = (key, data)
        return data

    def welcome(self, party: str, data: bytes) -> Welcome:
        """Complete a greeting. Raises `ProtocolError` or `CryptoError` unless this party answered this one, with a
        key made for it."""
        key, greeting = self._greetings[party]
        frame = self._parse(data, session.SIGNED)
        session.check_signature(self._identities[party], frame, answering=greeting)
        message = decode_reply(frame.body)
        if not isinstance(message, Welcome):
            raise RemoteProtocolError(f"expected a welcome from {party}, got {type(message).__name__}")
        if message.announcement.issued_round != key.issued_round:
            raise RemoteProtocolError(f"expected a key of {party} issued in round {key.issued_round}, got another")
        self.check(message.announcement, party)
        self._channels[party] = session.channel_with(
            key, message.announcement.public_key, self.context, party, at_party=False
        )
        del self._greetings[party]
        return message

    def check(self, announcement: Announcement, party: str) -> None:
        """Raises `CryptoError` unless this party's pinned identity signed this key for this run, and others can agree
        on secrets with it: they would refuse every roster that names it."""
        if announcement.party != party:
            raise CryptoError(f"{party} cannot announce a key of {announcement.party!r}")
        check_announcement(announcement, self._identities[party], self.context)
        check_usable(announcement.public_key)

    def read(self, party: str, data: bytes, expected: type[ReplyType]) -> ReplyType:
        """A party's reply in this exchange. Raises `ProtocolError` or `CryptoError` for anything else."""
        frame = self._parse(data, session.AUTHENTICATED)
        self._channels[party].check(frame)
        message = decode_reply(frame.body)
        if not isinstance(message, expected):
            raise RemoteProtocolError(f"expected {expected.__name__} from {party}, got {type(message).__name__}")
        return message

    def _parse(self, data: bytes, kind: int) -> session.Frame:
        frame = session.parse(data)
        if frame.kind != kind or frame.exchange != self._exchange:
            raise RemoteProtocolError(f"expected a reply to exchange {self._exchange}, got one to {frame.exchange}")
        return frame


def attempt(read: Callable[[], Result]) -> Result | str:
    """What `read` gives, or why it is not to be believed."""
    try:
        return read()
    except (ProtocolError, CryptoError) as error:
        return str(error)
