"""Runs from files: the second one over the same tables aligns nothing, and ends at the same weights."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from alignments import DictMemory
from vfedsec import trace
from vfedsec.config.load import load_job
from vfedsec.data.curve import usable_cores
from vfedsec.data.demo import write_demo
from vfedsec.data.table import Table
from vfedsec.engines.files import party_files, table_of
from vfedsec.engines.simulation import Options, Simulation

PASSIVE = ("telco_north", "telco_south", "retailer")


@dataclass
class Run:
    """What a simulation did until its parties were prepared, or until it had trained."""

    simulation: Simulation
    events: list[trace.Event]
    sent: dict[str, int] = field(default_factory=dict)
    """Bytes a party sent before the first round."""

    def of_type(self, kind: type) -> list[trace.Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def aligned(self) -> set[str]:
        """Who aligned its rows anew."""
        return {event.party for event in self.events if isinstance(event, trace.Aligning)} - {"bank"}

    def weights(self) -> dict[str, bytes]:
        top = self.simulation.aggregator._conclusion._top.dump()
        return {name: party.model.dump() for name, party in self.simulation.engine.parties.items()} | {"top": top}  # type: ignore[attr-defined]


def run(path: Path, *, train: bool = False, **options: object) -> Run:
    events: list[trace.Event] = []
    simulation = Simulation.from_files(path, Options(sink=events.append, **options))  # type: ignore[arg-type]
    if train:
        simulation.train()
    else:
        simulation.prepare()
    meter = simulation.engine.meter
    sent = {name: meter.costs[name]["mail"].bytes_sent for name in simulation.roles.parties}
    return Run(simulation, events, sent)


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return write_demo(tmp_path / "demo", customers=300, epochs=1)


def kept(job_file: Path) -> list[Path]:
    return sorted((job_file.parent / ".vfedsec").iterdir())


def change_rows(job_file: Path, party: str) -> None:
    """Take a row away."""
    table = job_file.with_name(f"{party}.csv")
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))


def test_a_second_run_aligns_nothing_and_ends_at_the_same_weights_bit_for_bit(job_file: Path) -> None:
    first, second = run(job_file, train=True), run(job_file, train=True)
    assert first.aligned() == set(PASSIVE)
    assert second.of_type(trace.Aligning) == []
    assert first.sent["bank"] > 300 * 33 * 3 > 10 * second.sent["bank"]
    assert all(first.sent[party] > second.sent[party] for party in PASSIVE)
    assert second.weights() == first.weights()
    assert second.simulation.rows_held() == first.simulation.rows_held()


def test_a_run_that_remembers_ends_where_one_does_that_remembers_nothing(job_file: Path) -> None:
    run(job_file)
    remembering = run(job_file, train=True).weights()
    shutil.rmtree(job_file.parent / ".vfedsec")
    assert run(job_file, train=True).weights() == remembering


def test_another_seed_of_the_job_does_not_align_anew(job_file: Path) -> None:
    run(job_file)
    text = job_file.read_text()
    job_file.write_text(text.replace("seed = 7", "seed = 8"))
    assert job_file.read_text() != text
    assert run(job_file).aligned() == set()


@pytest.mark.parametrize("party", PASSIVE)
def test_a_changed_table_of_a_passive_party_is_aligned_anew_and_no_other(job_file: Path, party: str) -> None:
    run(job_file)
    change_rows(job_file, party)
    assert run(job_file).aligned() == {party}
    assert run(job_file).aligned() == set()


def test_a_changed_table_of_the_active_party_is_aligned_anew_with_all(job_file: Path) -> None:
    run(job_file)
    change_rows(job_file, "bank")
    assert run(job_file).aligned() == set(PASSIVE)
    assert run(job_file).aligned() == set()


def test_where_a_run_is_started_or_its_folder_moved_to_changes_nothing(
    job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(job_file)
    monkeypatch.chdir(job_file.parent)
    assert run(Path("job.toml")).aligned() == set()
    moved = job_file.parent.rename(job_file.parent.with_name("moved"))
    assert run(moved / "job.toml").aligned() == set()


def test_a_partys_tables_are_remembered_side_by_side(job_file: Path) -> None:
    run(job_file)
    files = [job_file.with_name(f"{party}.toml") for party in ("bank", *PASSIVE)]
    first = {file: file.read_text() for file in files}
    for file in files:
        shutil.copy(file.with_suffix(".csv"), file.with_name(f"other_{file.stem}.csv"))
        change_rows(job_file, f"other_{file.stem}")
    other = {file: text.replace('source = "', 'source = "other_') for file, text in first.items()}
    for texts, expected in ((other, set(PASSIVE)), (first, set()), (other, set())):
        for file, text in texts.items():
            file.write_text(text)
        assert run(job_file).aligned() == expected


def test_a_run_uses_every_core() -> None:
    assert Options().curve._threads == usable_cores()


def test_rows_in_another_order_are_no_changed_table(job_file: Path) -> None:
    run(job_file)
    table = job_file.with_name("retailer.csv")
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, *reversed(rows)]))
    assert run(job_file).aligned() == set()


def test_a_party_that_says_so_remembers_nothing(job_file: Path) -> None:
    file = job_file.with_name("retailer.toml")
    file.write_text('remember = ""\n' + file.read_text())
    run(job_file)
    assert run(job_file).aligned() == {"retailer"}
    assert len(kept(job_file)) == 4


def test_a_party_remembers_in_the_folder_that_its_file_names(job_file: Path) -> None:
    file = job_file.with_name("retailer.toml")
    file.write_text('remember = "elsewhere"\n' + file.read_text())
    run(job_file)
    assert len(list((job_file.parent / "elsewhere").iterdir())) == 1
    assert run(job_file).aligned() == set()


def test_what_is_kept_holds_no_id(job_file: Path) -> None:
    run(job_file)
    ids = [line.split(",")[0] for line in job_file.with_name("bank.csv").read_text().splitlines()[1:]]
    everything = b"|".join(path.read_bytes() for path in kept(job_file))
    assert len(kept(job_file)) == 6
    assert not any(one.encode() in everything for one in ids)


def test_damaged_files_are_told_of_and_a_run_goes_on(job_file: Path) -> None:
    first = run(job_file, train=True)
    for path in kept(job_file):
        path.write_bytes(path.read_bytes()[:-3])
    second = run(job_file, train=True)
    assert len(second.of_type(trace.Warned)) == 6
    assert second.weights() == first.weights()
    assert run(job_file).of_type(trace.Warned) == []


def test_a_folder_that_cannot_be_written_is_told_of_and_a_run_goes_on(job_file: Path) -> None:
    (job_file.parent / ".vfedsec").write_text("in the way")
    for _ in range(2):
        events = run(job_file).of_type(trace.Warned)
        assert len({event.party for event in events if isinstance(event, trace.Warned)}) == len(events) == 4
        assert all("cannot be kept in" in event.message for event in events if isinstance(event, trace.Warned))


def tables_of(job_file: Path) -> dict[str, Table]:
    job = load_job(job_file)
    return {name: table_of(job, name, *file) for name, file in party_files(job, job_file).items()}


def test_tables_in_memory_remember_nothing_unless_they_are_given_a_memory(job_file: Path) -> None:
    job, tables = load_job(job_file), tables_of(job_file)
    memories = {name: DictMemory() for name in tables}
    sent = []
    for memory in (None, None, memories.get, memories.get):
        events: list[trace.Event] = []
        Simulation.from_tables(job, tables, options=Options(sink=events.append, memory=memory)).prepare()
        sent.append(sum(isinstance(event, trace.Aligning) for event in events))
    assert sent[0] == sent[1] == sent[2] > sent[3] == 0
    assert not (job_file.parent / ".vfedsec").exists()


def test_progress_ends_where_all_rows_are_compared(job_file: Path) -> None:
    first = run(job_file)
    last = {event.party: event for event in first.events if isinstance(event, trace.Aligning)}
    tables = tables_of(job_file)
    sizes = {name: len(table) for name, table in tables.items()}
    for party in PASSIVE:
        assert (last[party].done, last[party].total) == (sizes["bank"] + sizes[party],) * 2
    everything = sum(sizes["bank"] + sizes[party] for party in PASSIVE)
    assert (last["bank"].done, last["bank"].total) == (everything, everything)


def test_time_on_other_cores_is_that_of_the_party(job_file: Path) -> None:
    events: list[trace.Event] = []
    options = Options(sink=events.append)
    simulation = Simulation.from_files(job_file, options)
    handle = simulation.engine.parties["retailer"].handle

    def handled(request: bytes) -> bytes:
        options.curve.seconds_elsewhere += 5.0
        return handle(request)

    simulation.engine.parties["retailer"].handle = handled  # type: ignore[method-assign]
    simulation.prepare()
    assert simulation.engine.meter.costs["retailer"]["mail"].cpu_seconds > 5.0
    assert simulation.engine.meter.costs["telco_north"]["mail"].cpu_seconds < 5.0


def test_no_other_file_is_touched(job_file: Path) -> None:
    before = {path.name: path.read_bytes() for path in job_file.parent.iterdir() if path.is_file()}
    run(job_file)
    assert {path.name: path.read_bytes() for path in job_file.parent.iterdir() if path.is_file()} == before
