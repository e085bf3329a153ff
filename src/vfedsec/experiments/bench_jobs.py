"""The two jobs that training is measured on, with made-up numbers, and the same networks in one bare torch loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from vfedsec.config.job import Active, Fusion, Group, Job, ModelSpec, Security, Top, Training
from vfedsec.data.batches import TableBatches
from vfedsec.engines.simulation import PreparedParty
from vfedsec.protocol.interfaces import ABSENT_ROW, Rows
from vfedsec.protocol.roles import Roles

ROWS = 20_000
BATCH = 256
ACTIVE_INPUTS = 57
_UNBIASED = ModelSpec(options={"bias": False})
_ENDLESS = 2**31 - 1


def bank_job() -> Job:
    """The paper's Bank shapes: two groups of two parties, all adding to one slice of 64 columns."""
    groups = (
        Group(name="balance", parties=("p1", "p2"), columns=("c",), width=64, model=_UNBIASED),
        Group(name="person", parties=("p3", "p4"), columns=("c",), width=64, model=_UNBIASED),
    )
    return _job("bank", groups, Fusion(kind="sum"), Top(batch_norm=False))


def concat_job() -> Job:
    """Four groups of one party each, 64 columns apiece side by side."""
    groups = tuple(
        Group(name=f"g{number}", parties=(f"p{number}",), columns=("c",), width=64, model=_UNBIASED)
        for number in range(1, 5)
    )
    return _job("concat", groups, Fusion(kind="concat"), Top())


INPUTS = {
    "bank": {"p1": 3, "p2": 3, "p3": 20, "p4": 20},
    "concat": {"p1": 20, "p2": 20, "p3": 20, "p4": 20},
}
"""Encoded columns of each passive party."""


def _job(name: str, groups: tuple[Group, ...], fusion: Fusion, top: Top) -> Job:
    return Job(
        name=name,
        active=Active(party="active", columns=("c",)),
        groups=groups,
        fusion=fusion,
        top=top,
        training=Training(rounds=_ENDLESS, batch_size=BATCH, learning_rate=0.01, evaluate_every=0),
    )


def with_security(job: Job, **changes: Any) -> Job:
    """The same job under other security settings."""
    security: Security = msgspec.structs.replace(job.security, **changes)
    return msgspec.structs.replace(job, security=security)


def made_up_rows(job: Job, seed: int = 0) -> dict[str, PreparedParty]:
    """Random columns; the parties of a group hold disjoint rows, and labels follow from the active party's columns."""
    random = np.random.default_rng(seed)
    active = random.standard_normal((ROWS, ACTIVE_INPUTS)).astype(np.float32)
    labels = (active[:, 0] + random.standard_normal(ROWS) > 0).astype(np.float32)
    partners: dict[str, Rows] = {}
    parties = {}
    for group in job.groups:
        holder = random.integers(len(group.parties), size=ROWS)
        for index, party in enumerate(group.parties):
            partners[party], held = _row_numbers(holder == index)
            columns = INPUTS[job.name][party]
            parties[party] = PreparedParty(random.standard_normal((held, columns)).astype(np.float32))
    train = {"train": np.arange(ROWS, dtype=np.int32)}
    ids = [str(row) for row in range(ROWS)]
    batches = TableBatches(BATCH, train, partners, labels=labels, ids=ids, seed=b"order")  # type: ignore[arg-type]
    return {job.active.party: PreparedParty(active, batches), **parties}


def _row_numbers(held: NDArray[np.bool_]) -> tuple[Rows, int]:
    """A party's own row number for each row of the active party."""
    numbers = np.where(held, np.cumsum(held) - 1, ABSENT_ROW).astype(np.int32)
    return numbers, int(held.sum())


def bare_loop(job: Job, rows: dict[str, PreparedParty]) -> Callable[[int], None]:
    """The same split network in one plain torch loop: a function that trains so many rounds."""
    roles = Roles(job)
    batches = rows[roles.active].batches
    assert batches is not None
    features = [torch.from_numpy(rows[roles.active].features)] + [
        _pooled(group_rows, rows, batches) for group_rows in (group.parties for group in job.groups)
    ]
    bottoms = [torch.nn.Linear(ACTIVE_INPUTS, roles.width)] + [
        torch.nn.Linear(table.shape[1], group.width, bias=False)
        for table, group in zip(features[1:], job.groups, strict=True)
    ]
    norm = torch.nn.BatchNorm1d(roles.width) if job.top.batch_norm else torch.nn.Identity()
    top = torch.nn.Linear(roles.width, 1)
    network = torch.nn.ModuleList([*bottoms, norm, top])
    optimizer = torch.optim.SGD(network.parameters(), lr=job.training.learning_rate)
    counts = {"round": 0}

    def step(chosen: Rows) -> None:
        index = torch.from_numpy(chosen)
        parts = [bottom(table[index]) for bottom, table in zip(bottoms, features, strict=True)]
        joined = sum(parts[1:]) if job.fusion.kind == "sum" else torch.cat(parts[1:], 1)
        outputs = top(torch.relu(norm(parts[0] + joined))).squeeze(1)
        labels = torch.from_numpy(batches.labels(chosen))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def train(rounds: int) -> None:
        for _ in range(rounds):
            epoch, number = divmod(counts["round"], batches.count("train"))
            step(batches.rows("train", epoch, number))
            counts["round"] += 1

    return train


def _pooled(parties: tuple[str, ...], rows: dict[str, PreparedParty], batches: Any) -> torch.Tensor:
    """A group's columns in the active party's row order."""
    everyone = np.arange(ROWS, dtype=np.int32)
    table = np.zeros((ROWS, rows[parties[0]].features.shape[1]), np.float32)
    for party in parties:
        numbers = batches.partner_rows(party, everyone)
        held = numbers != ABSENT_ROW
        table[held] = rows[party].features[numbers[held]]
    return torch.from_numpy(table)
