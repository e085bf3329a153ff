"""What happened in a run, as a stream of small records: progress views draw it, files keep it, tests read it.

A record never holds a value of anybody's data, an id, or a secret.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, Literal

import msgspec

Outcome = Literal["trained", "padded", "dropped", "evaluated"]


class _Event(msgspec.Struct, frozen=True, tag_field="event", tag=True):
    """A record."""


class RunStarted(_Event, frozen=True):
    """Everybody is greeted and has built its model."""

    job: str
    mode: str
    train_batches: int
    rounds_planned: int


class Aligning(_Event, frozen=True):
    """A party has compared more of its rows with its partners' rows; those of both sides are counted."""

    party: str
    done: int
    total: int


class Warned(_Event, frozen=True):
    """Something that a party's owner should know and no reason to stop."""

    party: str
    message: str


class RoundEnded(_Event, frozen=True):
    """A mini-batch went by."""

    round_index: int
    kind: str
    epoch: int
    outcome: Outcome
    loss: float | None
    exchanges: int
    missing: tuple[str, ...] = ()
    """In the roster, but no reply came."""
    away: tuple[str, ...] = ()
    """Not in the roster."""


class Evaluated(_Event, frozen=True):
    """A pass over held-out rows is complete."""

    round_index: int
    trained_rounds: int
    kind: str
    metrics: dict[str, float]
    rows: int = 0
    """How many rows came; those of lost batches are missing."""


class PartyLost(_Event, frozen=True):
    """A party did not answer."""

    round_index: int
    party: str
    reason: str


class PartyReturned(_Event, frozen=True):
    """A party that was away answered a greeting."""

    round_index: int
    party: str


class KeyRenewed(_Event, frozen=True):
    """A party announced a new ephemeral key."""

    round_index: int
    party: str


class RunEnded(_Event, frozen=True):
    """Nothing more is sent."""

    reason: str
    round_index: int


Event = RunStarted | Aligning | Warned | RoundEnded | Evaluated | PartyLost | PartyReturned | KeyRenewed | RunEnded
Sink = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The sink of those who do not listen."""


def both(first: Sink, second: Sink) -> Sink:
    """One stream, two listeners."""

    def sink(event: Event) -> None:
        first(event)
        second(event)

    return sink


class TraceFile:
    """Writes every event as a line of JSON, into a new file or over an old one."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb")

    def __call__(self, event: Event) -> None:
        """Write one line."""
        self._file.write(msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()


def read_trace(path: Path) -> list[Event]:
    """The events of a trace file."""
    decoder = msgspec.json.Decoder(Event)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]
