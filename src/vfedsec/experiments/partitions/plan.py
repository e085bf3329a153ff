"""Which party holds which columns, and what is trained over them.

The overhead partitions are those of the paper's appendix, word for word. For the drop-out partitions it says only that
features are dealt at random, so they are dealt here, by a seed, once and for all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from vfedsec.data.datasets.catalogue import ADULT, BANK, EMNIST, FASHION_MNIST, KnownImages, KnownTable

Network = Literal["linear", "mlp", "cnn"]
Purpose = Literal["training", "overhead", "dropout"]

ACTIVE = "active"
"""What the active party is called; the others are `client1`, `client2` and so on, as in the paper."""
IMAGE = "image"
"""What the one column of an image party is called."""
SEED = 1
"""Deals columns, tells who knows whom, orders tables, and is every job's seed."""


@dataclass(frozen=True)
class Holding:
    """What a party knows of each of its rows."""

    columns: tuple[str, ...]
    """Of the table, or the one with the image."""
    lines: range = range(0)
    """Which lines of the image."""
    across: int = 0
    """How many pixels a line has."""


@dataclass(frozen=True)
class GroupPlan:
    """Parties that hold the same of different rows, which are dealt to them at random."""

    name: str
    parties: tuple[str, ...]
    holding: Holding


@dataclass(frozen=True)
class JobPlan:
    """One job over a partition."""

    file: str
    """Its name without the suffix."""
    purpose: Purpose
    network: Network
    without: str = ""
    """A column that the parties hold and the job leaves alone."""


@dataclass(frozen=True)
class Partition:
    """A folder of `examples/paper`."""

    name: str
    """The folder's."""
    known: KnownTable | KnownImages
    active: Holding
    groups: tuple[GroupPlan, ...]
    jobs: tuple[JobPlan, ...]

    @property
    def holdings(self) -> dict[str, Holding]:
        """By party, the active one first."""
        return {ACTIVE: self.active} | {party: group.holding for group in self.groups for party in group.parties}


def _pairs(*column_lists: tuple[str, ...]) -> tuple[GroupPlan, ...]:
    """Two parties a group, as in both overhead partitions of tables."""
    numbers = range(1, 2 * len(column_lists), 2)
    return tuple(
        GroupPlan(f"clients-{number}-{number + 1}", (f"client{number}", f"client{number + 1}"), Holding(columns))
        for number, columns in zip(numbers, column_lists, strict=True)
    )


def _alone(holdings: list[Holding]) -> tuple[GroupPlan, ...]:
    """One party a group."""
    return tuple(
        GroupPlan(f"client{number}", (f"client{number}",), holding) for number, holding in enumerate(holdings, start=1)
    )


def _dealt(known: KnownTable, parties: int, jobs: tuple[JobPlan, ...]) -> Partition:
    """All columns of a table at random over so many parties, one or two columns apart."""
    shuffled = random.Random(SEED).sample(list(known.columns), len(known.columns))
    hands = [Holding(tuple(name for name in known.columns if name in shuffled[i::parties])) for i in range(parties)]
    return Partition(f"{known.key}-{parties}", known, hands[0], _alone(hands[1:]), jobs)


def _sliced(known: KnownImages, parties: int, jobs: tuple[JobPlan, ...]) -> Partition:
    """Horizontal slices of images, from the top; where they cannot be equal, the upper ones are a line higher."""
    height, higher = divmod(known.side, parties)
    edges = [place * height + min(place, higher) for place in range(parties + 1)]
    slices = [Holding((IMAGE,), range(edges[i], edges[i + 1]), known.side) for i in range(parties)]
    return Partition(f"{known.key}-{parties}", known, slices[0], _alone(slices[1:]), jobs)


_OF_TABLES = (JobPlan("job", "training", "linear"), JobPlan("overhead", "overhead", "linear"))
_BANK = Partition(
    "bank",
    BANK,
    Holding(("housing", "loan", "contact", "day", "month", "campaign", "pdays", "previous", "poutcome")),
    _pairs(("default", "balance"), ("age", "job", "marital", "education")),
    _OF_TABLES,
)
_ADULT = Partition(
    "adult",
    ADULT,
    Holding(("workclass", "occupation", "capital-gain", "capital-loss", "hours-per-week")),
    _pairs(("race", "marital-status", "relationship", "age", "gender", "native-country"), ("education",)),
    _OF_TABLES,
)
_OVERHEAD_OF_IMAGES = (JobPlan("overhead-cnn", "overhead", "cnn"), JobPlan("overhead-mlp", "overhead", "mlp"))
_DROPOUT_OF_IMAGES = (JobPlan("dropout-cnn", "dropout", "cnn"), JobPlan("dropout-mlp", "dropout", "mlp"))
_DROPOUT = JobPlan("dropout", "dropout", "mlp")
# How long a call lasted is known only after it, and tells much of how it ended.
_DROPOUT_OF_BANK = (
    replace(_DROPOUT, without="duration"),
    replace(_DROPOUT, file="dropout-with-duration"),
)

PARTITIONS: dict[str, Partition] = {
    partition.name: partition
    for partition in (
        _BANK,
        *(_dealt(BANK, parties, _DROPOUT_OF_BANK) for parties in (5, 8)),
        _ADULT,
        *(_dealt(ADULT, parties, (_DROPOUT,)) for parties in (5, 8)),
        *(
            partition
            for known in (EMNIST, FASHION_MNIST)
            for partition in (
                _sliced(known, 4, _OVERHEAD_OF_IMAGES + _DROPOUT_OF_IMAGES),
                _sliced(known, 8, _DROPOUT_OF_IMAGES),
            )
        ),
    )
}
"""By folder, those of a data set next to each other."""
