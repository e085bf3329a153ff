"""What can go wrong between an aggregator and a party, as hooks of the `local` engine.

A hook sees every request on its way out and every reply on its way back, and may drop, delay, repeat, swap or change
it. `RandomDropouts` is the paper's simulation: a share of training rounds, each losing a share of the parties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from vfedsec.config.job import Simulation
from vfedsec.protocol.switchboard import Exchange


class Fault(Enum):
    """What happens to one party in one exchange."""

    NONE = "none"
    BEFORE = "before"  #: the request never arrives
    MIDDLE = "middle"  #: the party does its work, and its reply comes after the deadline
    GONE = "gone"  #: the party cannot be reached, and the engine knows it at once


class Faults:
    """The hooks, doing nothing. Override what should go wrong."""

    def strike(self, exchange: Exchange, party: str) -> Fault:
        """What happens to this party in this exchange."""
        return Fault.NONE

    def request(self, exchange: Exchange, party: str, data: bytes) -> list[bytes]:
        """The requests that arrive in place of this one, in order."""
        return [data]

    def reply(self, exchange: Exchange, party: str, data: bytes) -> bytes:
        """The reply that arrives in place of this one."""
        return data


class RandomDropouts(Faults):
    """Training rounds that lose parties at random, before, in the middle of, or right after their part in a round.

    With `drop_probability` a training round loses `drop_proportion` of the passive parties, at least one; it strikes
    those who take part in the round, if there are as many. A party lost after its reply misses the next exchange, which
    brings the gradient it would learn from.
    """

    POINTS = ("before", "middle", "after")

    def __init__(
        self, simulation: Simulation, parties: Sequence[str], seed: int, points: Sequence[str] = POINTS
    ) -> None:
        self._simulation = simulation
        self._parties = list(parties)
        self._points = list(points)
        self._random = np.random.default_rng([seed, 0xD809])
        self._round = -1
        self._struck: dict[str, str] = {}
        self._leaving: set[str] = set()

    def strike(self, exchange: Exchange, party: str) -> Fault:
        """See `Faults`; only training is struck, so that evaluations of different runs compare."""
        if not exchange.training:
            return Fault.NONE
        if exchange.kind == "train" and exchange.round_index != self._round:
            self._round = exchange.round_index
            self._draw([name for name in self._parties if name in exchange.awaited])
        if party in self._leaving:
            self._leaving.discard(party)
            return Fault.BEFORE
        point = self._struck.get(party)
        if exchange.kind != "train" or point is None:
            return Fault.NONE
        del self._struck[party]
        if point == "after":
            self._leaving.add(party)
            return Fault.NONE
        return Fault.BEFORE if point == "before" else Fault.MIDDLE

    def _draw(self, present: list[str]) -> None:
        self._struck = {}
        if self._random.random() >= self._simulation.drop_probability or not present:
            return
        count = max(1, math.floor(self._simulation.drop_proportion * len(self._parties)))
        for party in self._random.choice(present, size=min(count, len(present)), replace=False):
            self._struck[str(party)] = str(self._random.choice(self._points))
