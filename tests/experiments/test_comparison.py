"""Alone, padded, discarding, pooled: four runs that differ in nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from vfedsec import trace
from vfedsec.data.demo import write_demo
from vfedsec.engines.simulation import Options, Simulation
from vfedsec.experiments.comparison import Comparison, Name, compare, with_policy
from vfedsec.experiments.report import comparison_report, comparison_summary, run_report

CUSTOMERS = 1_500
ALIGNING_ANEW = Options(memory=lambda name: None)


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"), customers=CUSTOMERS, epochs=6)


@pytest.fixture(scope="module")
def prepared(job_file: Path) -> Simulation:
    simulation = Simulation.from_files(job_file, ALIGNING_ANEW)
    simulation.prepare()
    return simulation


@pytest.fixture(scope="module")
def heard() -> dict[Name, list[trace.Event]]:
    return {}


@pytest.fixture(scope="module")
def comparison(prepared: Simulation, heard: dict[Name, list[trace.Event]]) -> Comparison:
    def listen(name: Name) -> trace.Sink:
        return heard.setdefault(name, []).append

    return compare(prepared, listen)


def test_all_four_attempt_the_same_rounds(comparison: Comparison) -> None:
    planned = 6 * (round(CUSTOMERS * 0.8) // 256)
    assert {one.rounds for one in comparison.contestants().values()} == {planned}


def test_discarding_uses_fewer_rounds_than_padding(comparison: Comparison) -> None:
    assert comparison.discard.rounds_used < comparison.pad.rounds_used <= comparison.pooled.rounds_used
    assert comparison.pooled.rounds_used == comparison.pooled.rounds


def test_the_padded_run_is_the_one_that_the_files_describe(job_file: Path, comparison: Comparison) -> None:
    assert Simulation.from_files(job_file).train().metrics == comparison.pad.metrics


def test_the_jobs_own_policy_does_not_matter(prepared: Simulation, comparison: Comparison) -> None:
    other = prepared.again(with_policy(prepared.job, "discard"))
    again = compare(other)
    for name in ("pad", "discard"):
        assert again.contestants()[name].metrics == comparison.contestants()[name].metrics


def test_both_federations_count_the_whole_set_up(prepared: Simulation, comparison: Comparison) -> None:
    alignment = sum(prepared.engine.meter.of_kind(party, "mail").bytes_sent for party in prepared.roles.parties)
    assert comparison.pad.setup_bytes == comparison.discard.setup_bytes > 2 * alignment
    assert comparison.pad.bytes_moved > comparison.pad.setup_bytes
    assert comparison.alone is not None
    assert comparison.alone.bytes_moved == comparison.pooled.bytes_moved == 0


def test_the_bytes_are_those_of_a_run_by_itself(job_file: Path, comparison: Comparison) -> None:
    alone = Simulation.from_files(job_file, ALIGNING_ANEW)
    alone.train()
    alone.finish()
    assert comparison.pad.bytes_moved == pytest.approx(alone.engine.meter.bytes_moved(), rel=1e-5)


def test_each_is_announced_and_only_federations_tell_events(
    comparison: Comparison, heard: dict[Name, list[trace.Event]]
) -> None:
    assert set(heard) == set(comparison.contestants())
    assert {name for name, events in heard.items() if events} == {"pad", "discard"}


def test_histories_end_with_the_test_rows(comparison: Comparison) -> None:
    for one in comparison.contestants().values():
        assert [point.kind for point in one.history][-1] == "test"
        assert one.history[-1].metrics == one.metrics
        assert one.history[-1].rounds == one.rounds


def test_without_columns_nobody_trains_alone(prepared: Simulation) -> None:
    active = msgspec.structs.replace(prepared.job.active, columns=())
    short = msgspec.structs.replace(prepared.job.training, rounds=2)
    security = msgspec.structs.replace(prepared.job.security, insecure_label_only_active=True)
    job = msgspec.structs.replace(prepared.job, active=active, training=short, security=security)
    comparison = compare(prepared.again(job, Options()))
    assert comparison.alone is None
    assert set(comparison.contestants()) == {"pad", "discard", "pooled"}


def test_a_summary_has_the_metric_the_rounds_and_the_bytes(comparison: Comparison) -> None:
    summary = comparison_summary(comparison)
    assert set(summary) == {"alone", "pad", "discard", "pooled"}
    assert set(summary["pad"]) == {"auc", "rounds", "rounds_used", "bytes", "seconds"}
    assert summary["pad"]["auc"] == comparison.pad.metrics["auc"]


def test_a_report_says_where_its_numbers_come_from(prepared: Simulation, comparison: Comparison) -> None:
    report = comparison_report(prepared.job, comparison)
    assert report["provenance"].keys() == {"job", "job_digest", "seed", "vfedsec", "torch", "python", "machine"}
    assert msgspec.json.decode(msgspec.json.encode(report))["comparison"]["metric"] == "auc"


def test_a_run_report_counts_what_everybody_spent(prepared: Simulation) -> None:
    short = msgspec.structs.replace(prepared.job.training, rounds=2)
    simulation = prepared.again(msgspec.structs.replace(prepared.job, training=short))
    report = run_report(simulation.job, simulation.train(), 1.5)
    assert set(report["parties"]) == {"aggregator", *simulation.roles.parties}
    assert sum(cost["bytes_sent"] + cost["bytes_received"] for cost in report["parties"].values()) == report["bytes"]
    assert sum(report["rounds"].values()) == 2
    for cost in report["parties"].values():
        for parts in (cost["phases"], cost["kinds"]):
            assert sum(part["bytes_sent"] for part in parts.values()) == cost["bytes_sent"]
            assert sum(part["values_rounded"] for part in parts.values()) == cost["values_rounded"]
