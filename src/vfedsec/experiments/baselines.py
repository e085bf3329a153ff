"""The same network trained without a federation: by the active party alone, or with all columns in one place.

Both take the prepared rows of a simulation, its batches in their order, its loss and weights of classes, its optimizer,
its number of rounds and its initial weights, so that a difference in the result comes from the columns or from the
federation. Nothing of the protocol is used: this is an ordinary training loop of torch, and thereby a check on the
other.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vfedsec.config.job import Group, Job, ModelSpec, Training
from vfedsec.crypto.pairs import derive
from vfedsec.engines.secrets import Secrets
from vfedsec.engines.simulation import PreparedParty
from vfedsec.errors import ConfigError
from vfedsec.experiments.history import Point
from vfedsec.metrics import evaluate
from vfedsec.models.registry import build_module
from vfedsec.models.tasks import build_task_loss, load_custom_loss
from vfedsec.protocol.interfaces import ABSENT_ROW, Batches, BatchKind, Floats, Rows
from vfedsec.protocol.messages import Ready
from vfedsec.protocol.schedule import training_schedule

PreparedRows = Mapping[str, PreparedParty]


@dataclass(frozen=True)
class Baseline:
    """How a training run without a federation ended."""

    metrics: dict[str, float]
    """On the test rows, after the last round."""
    history: tuple[Point, ...]
    """Every evaluation, in order."""
    rounds: int
    """Mini-batches, all of them used."""
    seconds: float
    """Wall-clock time."""


def train_alone(job: Job, rows: PreparedRows, allowed_packages: Collection[str] = ()) -> Baseline:
    """The active party on its own columns: its bottom model and a top model, nobody else's.

    Raises `ConfigError` when it has no columns.
    """
    if not job.active.columns:
        raise ConfigError("expected an active party with columns of its own to train alone, found none")
    return _train(job, rows, (), allowed_packages)


def train_pooled(job: Job, rows: PreparedRows, allowed_packages: Collection[str] = ()) -> Baseline:
    """All columns in one place: every bottom model and the top model as one network, trained jointly."""
    return _train(job, rows, job.groups, allowed_packages)


class _Source(nn.Module):
    """Columns with the bottom model that reads them; rows that are not held give zeros."""

    def __init__(self, features: Floats, model: nn.Module, width: int) -> None:
        super().__init__()
        self.model = model
        self._features = torch.from_numpy(np.array(features, np.float32))
        self._width = width

    def forward(self, rows: Rows) -> Tensor:
        held = np.flatnonzero(rows != ABSENT_ROW)
        embedding = torch.zeros(len(rows), self._width)
        if not len(held):
            return embedding
        return embedding.index_copy(0, torch.from_numpy(held), self.model(self._features[rows[held]]))


class _GroupRows:
    """The tables of a group's parties as one, and which of its rows belongs to each row of the active party."""

    def __init__(self, group: Group, rows: PreparedRows) -> None:
        tables = [rows[party].features for party in group.parties]
        self.features: Floats = np.concatenate(tables)
        starts = np.cumsum([0, *(len(table) for table in tables)]).tolist()
        self._starts = dict(zip(group.parties, starts, strict=False))

    def rows(self, batches: Batches, rows: Rows) -> Rows:
        """Rows of the joint table; at most one party of a group holds a row."""
        found = np.full(len(rows), ABSENT_ROW, np.int32)
        for party, start in self._starts.items():
            theirs = batches.partner_rows(party, rows)
            found = np.where(theirs == ABSENT_ROW, found, theirs + np.int32(start))
        return found


class _Network(nn.Module):
    """Bottom models -> joined embedding -> batch norm -> activation -> top model, as one."""

    def __init__(self, job: Job, rows: PreparedRows, groups: tuple[Group, ...], allowed: Collection[str]) -> None:
        super().__init__()
        self._batches = _batches_of(job, rows)
        self._is_concat = job.fusion.kind == "concat"
        self._groups = [_GroupRows(group, rows) for group in groups]
        seeds, width = _Seeds(job), job.embedding_width

        def source(features: Floats, width: int, spec: ModelSpec, seed: bytes) -> _Source:
            return _Source(features, build_module(spec, features.shape[1], width, seed, allowed), width)

        self.active = None
        if job.active.columns:
            own = rows[job.active.party].features
            self.active = source(own, width, job.active.model, seeds.of_active(job.active.party))
        self.sources = nn.ModuleList(
            source(joint.features, group.width, group.model, seeds.of_group(group))
            for group, joint in zip(groups, self._groups, strict=True)
        )
        self.norm = nn.BatchNorm1d(width) if job.top.batch_norm else nn.Identity()
        self.activation = nn.ReLU() if job.top.activation == "relu" else nn.Identity()
        self.top = build_module(job.top.model, width, job.output_width, seeds.of_top(), allowed)

    def forward(self, rows: Rows) -> Tensor:
        outputs: Tensor = self.top(self.activation(self.norm(self._embedding(rows))))
        return outputs

    def _embedding(self, rows: Rows) -> Tensor:
        parts = [
            source(joint.rows(self._batches, rows)) for source, joint in zip(self.sources, self._groups, strict=True)
        ]
        if self._is_concat and parts:
            parts = [torch.cat(parts, dim=1)]
        if self.active is not None:
            parts.append(self.active(rows))
        return torch.stack(parts).sum(dim=0)


class _Seeds:
    """The seeds that a simulation draws initial weights from, so that both begin with the same ones."""

    def __init__(self, job: Job) -> None:
        self._secrets = Secrets(job, {})

    def of_active(self, party: str) -> bytes:
        return derive(self._secrets.private_seed(party), "model", party)

    def of_group(self, group: Group) -> bytes:
        return derive(self._secrets.private_seed(group.parties[0]), "model", group.name)

    def of_top(self) -> bytes:
        return derive(self._secrets.job_seed, "top model")


def _train(job: Job, rows: PreparedRows, groups: tuple[Group, ...], allowed: Collection[str]) -> Baseline:
    start = time.perf_counter()
    batches = _batches_of(job, rows)
    network = _Network(job, rows, groups, allowed)
    step = _Step(job, network, batches, allowed)
    history: list[Point] = []
    rounds = 0
    for batch in training_schedule(job, _sizes(batches)):
        if batch.kind == "train":
            step.train(batches.rows("train", batch.epoch, batch.index))
            rounds += 1
        elif batch.index == 0:
            history.append(Point(rounds, rounds, batch.kind, step.evaluate(batch.kind)))
    metrics = next((point.metrics for point in reversed(history) if point.kind == "test"), {})
    return Baseline(metrics, tuple(history), rounds, time.perf_counter() - start)


class _Step:
    """Trains a network by a mini-batch, and evaluates it."""

    def __init__(self, job: Job, network: _Network, batches: Batches, allowed: Collection[str]) -> None:
        self._network = network
        self._batches = batches
        self._kind = job.task.kind
        class_rows = batches.class_rows(job.task.class_count) if job.task.is_balanced else ()
        self._task = build_task_loss(job.task, class_rows)
        self._loss = load_custom_loss(job.task, allowed) or self._task.loss
        self._optimizer = _optimizer(job.training, network)

    def train(self, rows: Rows) -> None:
        """One optimizer step."""
        rows = rows[rows != ABSENT_ROW]
        self._network.train(len(rows) > 1)  # a single row has no statistics
        self._optimizer.zero_grad()
        loss: Tensor = self._loss(self._network(rows), self._task.targets(self._batches.labels(rows)))
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()

    def evaluate(self, kind: BatchKind) -> dict[str, float]:
        """The metrics on all rows of a kind."""
        chosen = np.concatenate([self._batches.rows(kind, 0, index) for index in range(self._batches.count(kind))])
        rows = chosen[chosen != ABSENT_ROW]
        self._network.eval()
        with torch.inference_mode():
            outputs = self._task.predict(self._network(rows)).numpy()
        return evaluate(self._kind, self._batches.labels(rows), outputs)


def _optimizer(training: Training, network: nn.Module) -> torch.optim.Optimizer:
    if training.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), training.learning_rate)
    return torch.optim.SGD(network.parameters(), training.learning_rate, training.momentum)


def _batches_of(job: Job, rows: PreparedRows) -> Batches:
    batches = rows[job.active.party].batches
    if batches is None:
        raise ConfigError(f"expected prepared rows with the batches of {job.active.party!r}, found none")
    return batches


def _sizes(batches: Batches) -> Ready:
    return Ready(batches.count("train"), batches.count("validation"), batches.count("test"), batches.count("predict"))
