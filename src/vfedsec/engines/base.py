"""What an engine is: send these requests, return the replies that came before the deadline, say who is gone."""

from __future__ import annotations

from typing import Any, Protocol

from vfedsec.protocol.aggregator import Program
from vfedsec.protocol.switchboard import Exchange, Replies


class Engine(Protocol):
    """Moves the bytes of one exchange after the other."""

    def exchange(self, exchange: Exchange) -> Replies:
        """Send all requests at once; return when every awaited reply is there, or at the deadline."""


def drive(program: Program, engine: Engine) -> Any:
    """Run one of the aggregator's programs to its end, and give back what it returns."""
    try:
        exchange = next(program)
        while True:
            exchange = program.send(engine.exchange(exchange))
    except StopIteration as end:
        return end.value
