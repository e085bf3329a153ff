"""Training without a federation: an ordinary torch loop that agrees with the federation where it should."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from federation import job_of
from vfedsec.config.job import Job, ModelSpec
from vfedsec.data.batches import TableBatches
from vfedsec.engines.simulation import PreparedParty, Simulation
from vfedsec.errors import ConfigError
from vfedsec.experiments.baselines import train_alone, train_pooled
from vfedsec.protocol.interfaces import ABSENT_ROW, BatchKind

ROWS, COLUMNS = 240, 3
Prepared = dict[str, PreparedParty]


def rows_of(job: Job, held: float = 0.7, seed: int = 3) -> Prepared:
    """Made-up rows: at most one party of a group holds each, and the label needs everybody's columns."""
    random = np.random.default_rng(seed)
    own = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    score, partners, parties = own[:, 0].copy(), {}, {}
    for group in job.groups:
        columns = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
        holder = random.integers(len(group.parties), size=ROWS)
        somebody = random.random(ROWS) < held
        score += np.where(somebody, 2 * columns[:, 0], 0)
        for number, party in enumerate(group.parties):
            mine = np.flatnonzero((holder == number) & somebody)
            partners[party] = np.full(ROWS, ABSENT_ROW, np.int32)
            partners[party][mine] = np.arange(len(mine))
            parties[party] = PreparedParty(columns[mine])
    kinds: dict[BatchKind, Any] = {
        "train": np.arange(160, dtype=np.int32),
        "validation": np.arange(160, 200, dtype=np.int32),
        "test": np.arange(200, ROWS, dtype=np.int32),
    }
    labels = (score > 0).astype(np.float32)
    batches = TableBatches(job.training.batch_size, kinds, partners, labels=labels, seed=b"order")
    return {job.active.party: PreparedParty(own, batches), **parties}


def faultless(fusion: str = "concat", **training: Any) -> Job:
    numbers = {"evaluate_every": 20} | training
    # A bias would cancel in the batch norm, and Adam would make full steps of what rounding leaves of its gradient.
    unbiased = ModelSpec(options={"bias": False})
    job = job_of((2, 1), fusion=fusion, mode="insecure-plain", rounds=60, training=numbers, model=unbiased)
    columns = tuple(f"c{number}" for number in range(COLUMNS))
    return msgspec.structs.replace(job, active=msgspec.structs.replace(job.active, columns=columns))


@pytest.mark.parametrize("fusion", ["concat", "sum"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_pooled_training_is_what_a_federation_without_faults_does(fusion: str, optimizer: str) -> None:
    job = faultless(fusion, optimizer=optimizer)
    rows = rows_of(job, held=1.0)  # a row that a group lacks is nothing to a federation, not even the active part
    federated, pooled = Simulation.from_prepared(job, rows).train(), train_pooled(job, rows)
    near = 1e-4
    assert pooled.metrics == pytest.approx(federated.metrics, abs=near)
    assert [point.metrics for point in pooled.history] == [
        pytest.approx(event.metrics, abs=near) for event in federated.history
    ]


def test_pooled_training_uses_the_momentum_of_the_job() -> None:
    job = faultless(momentum=0.9)
    rows = rows_of(job, held=1.0)
    federated, pooled = Simulation.from_prepared(job, rows).train(), train_pooled(job, rows)
    assert pooled.metrics == pytest.approx(federated.metrics, abs=1e-4)
    assert pooled.metrics != train_pooled(faultless(), rows).metrics


@pytest.mark.parametrize("class_weights", ["balanced", (0.5, 4.0)])
def test_pooled_training_weighs_classes_as_the_federation_does(class_weights: Any) -> None:
    job = faultless()
    task = msgspec.structs.replace(job.task, class_weights=class_weights)
    weighted = msgspec.structs.replace(job, task=task)
    rows = rows_of(job, held=1.0)
    own = rows[job.active.party].batches
    assert isinstance(own, TableBatches)
    assert own._labels is not None
    own._labels[:80] = 0  # otherwise there would be nothing to balance
    federated, pooled = Simulation.from_prepared(weighted, rows).train(), train_pooled(weighted, rows)
    assert pooled.metrics == pytest.approx(federated.metrics, abs=1e-4)
    for train in (train_pooled, train_alone):
        assert train(weighted, rows).metrics["log_loss"] != pytest.approx(
            train(job, rows).metrics["log_loss"], abs=5e-3
        )


def test_both_baselines_take_the_rounds_of_the_job() -> None:
    job = faultless()
    rows = rows_of(job)
    for baseline in (train_alone(job, rows), train_pooled(job, rows)):
        assert baseline.rounds == 60
        assert [(point.rounds, point.rounds_used, point.kind) for point in baseline.history] == [
            (20, 20, "validation"),
            (40, 40, "validation"),
            (60, 60, "test"),
        ]
        assert baseline.metrics == baseline.history[-1].metrics


def test_alone_does_not_see_the_columns_of_others() -> None:
    job = faultless()
    rows = rows_of(job)
    changed = {party: PreparedParty(kept.features + 1, kept.batches) for party, kept in rows.items()}
    changed[job.active.party] = rows[job.active.party]
    assert train_alone(job, changed).metrics == train_alone(job, rows).metrics
    assert train_pooled(job, changed).metrics != train_pooled(job, rows).metrics


def test_all_columns_tell_more_than_the_active_partys() -> None:
    job = faultless(optimizer="adam", learning_rate=0.02)
    rows = rows_of(job)
    assert train_pooled(job, rows).metrics["auc"] > train_alone(job, rows).metrics["auc"] + 0.1


def test_features_of_rows_that_nobody_maps_to_do_not_matter() -> None:
    job = faultless()
    rows = rows_of(job)
    for party in job.passive_parties:
        stray = np.full((5, COLUMNS), 1e6, np.float32)
        rows[party] = PreparedParty(np.concatenate([rows[party].features, stray]))
    assert train_pooled(job, rows).metrics == train_pooled(job, rows_of(job)).metrics


def test_a_group_that_holds_no_row_of_a_batch_gives_zeros() -> None:
    job = faultless()
    metrics = train_pooled(job, rows_of(job, held=0.0)).metrics
    assert not np.isnan(metrics["auc"])


def test_an_active_party_without_columns_cannot_train_alone() -> None:
    job = faultless()
    bare = msgspec.structs.replace(job, active=msgspec.structs.replace(job.active, columns=(), model=ModelSpec()))
    with pytest.raises(ConfigError, match="expected an active party with columns of its own"):
        train_alone(bare, rows_of(job))


def test_an_active_party_without_columns_adds_nothing_to_the_pool() -> None:
    job = faultless()
    bare = msgspec.structs.replace(job, active=msgspec.structs.replace(job.active, columns=()))
    rows = rows_of(job)
    rows[job.active.party] = PreparedParty(np.empty((ROWS, 0), np.float32), rows[job.active.party].batches)
    assert train_pooled(bare, rows).metrics["auc"] > 0.5


def test_rows_without_batches_are_refused() -> None:
    job = faultless()
    rows = rows_of(job)
    rows[job.active.party] = PreparedParty(rows[job.active.party].features)
    with pytest.raises(ConfigError, match="expected prepared rows with the batches of 'active'"):
        train_pooled(job, rows)
