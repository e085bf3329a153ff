"""All parties in this process: the same bytes through `handle` as over any network, with hooks for what can go wrong.

Time is simulated: an exchange that everybody answers takes none, one that somebody misses takes the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from vfedsec.config.job import AGGREGATOR
from vfedsec.engines.faults import Fault, Faults
from vfedsec.engines.metering import Meter, Stopwatch, cpu_clock, wall_clock
from vfedsec.errors import CryptoError, ProtocolError
from vfedsec.protocol.secure_layer import SecureLayer
from vfedsec.protocol.switchboard import Exchange, Replies

Tap = Callable[[Exchange, str, bytes, bytes | None], None]
"""Sees each exchange, party, request and reply (none if the aggregator got none)."""


class Handler(Protocol):
    """A party, as an engine sees it."""

    secure: SecureLayer

    def handle(self, request: bytes) -> bytes:
        """The reply to a request."""


class LocalEngine:
    """Implements `Engine` by calling the parties."""

    def __init__(
        self,
        parties: Mapping[str, Handler],
        *,
        deadline: float,
        faults: Faults | None = None,
        tap: Tap | None = None,
        cpu: Callable[[], float] = cpu_clock,
    ) -> None:
        """`cpu` tells the CPU seconds of whatever works for the parties."""
        self.parties = dict(parties)
        self.meter = Meter()
        self.now = 0.0
        self._deadline = deadline
        self._faults = faults or Faults()
        self._tap = tap
        self._watch = Stopwatch(cpu)

    def exchange(self, exchange: Exchange) -> Replies:
        """See `Engine`."""
        self._meter_aggregator(exchange)
        self.now += exchange.delay
        received: dict[str, bytes] = {}
        gone: dict[str, str] = {}
        for party, request in exchange.requests.items():
            fault = self._faults.strike(exchange, party)
            if fault is Fault.GONE:
                gone[party] = "not reachable"
            if fault in (Fault.GONE, Fault.BEFORE):
                continue
            reply = self._deliver(exchange, party, request, gone)
            if reply is not None and fault is Fault.NONE:
                received[party] = self._faults.reply(exchange, party, reply)
            if self._tap:
                self._tap(exchange, party, request, received.get(party))
                self._watch.lap()  # nobody's time
        if exchange.awaited - received.keys() - gone.keys():
            self.now += self._deadline
        return Replies(received, gone, self.now)

    def _deliver(self, exchange: Exchange, party: str, request: bytes, gone: dict[str, str]) -> bytes | None:
        """What the party answers to the last request that arrives; a refusal is as good as a party that is gone."""
        reply: bytes | None = None
        for arriving in self._faults.request(exchange, party, request):
            try:
                reply = self._handle(exchange, party, arriving)
            except (ProtocolError, CryptoError) as error:
                gone[party] = f"refused: {error}"
                self._watch.lap()  # nobody's time
            else:
                gone.pop(party, None)
        return reply

    def _handle(self, exchange: Exchange, party: str, request: bytes) -> bytes:
        handler = self.parties[party]
        layer = handler.secure
        security, rounded, clipped = layer.seconds, layer.rounded, layer.clipped
        wall = wall_clock()
        reply = handler.handle(request)
        wall, cpu = wall_clock() - wall, self._watch.lap()
        self.meter.add(
            party,
            exchange.kind,
            sent=len(reply),
            received=len(request),
            cpu=cpu,
            # The layer reads the cheap clock: its stretches count as much of the CPU time as of the time in all.
            security=(layer.seconds - security) * min(1.0, cpu / wall),
            rounded=layer.rounded - rounded,
            clipped=layer.clipped - clipped,
        )
        return reply

    def _meter_aggregator(self, exchange: Exchange) -> None:
        """The aggregator's time since the last replies, counted to the exchange that it led to."""
        self.meter.add(AGGREGATOR, exchange.kind, cpu=self._watch.lap())
