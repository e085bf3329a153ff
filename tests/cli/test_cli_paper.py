"""`vfedsec paper partitions` as people run it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rich.console import Console

from published import published, small_bank
from vfedsec.cli import main
from vfedsec.cli.fetching import watched
from vfedsec.data import datasets
from vfedsec.data.datasets.openml import Fetch
from vfedsec.errors import DataError

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """The data set Bank Marketing."""
    dataset = published("bank")
    return Path(dataset.source.split(" in ")[1])


def partitions(*arguments: object) -> int:
    return main(["paper", "partitions", *map(str, arguments)])


def test_the_jobs_are_printed_and_can_be_checked(bank: Path, tmp_path: Path, capsys: Captured) -> None:
    assert partitions("bank", "bank-5", "--data-dir", bank, "--to", tmp_path) == 0
    printed = capsys.readouterr()
    jobs = ["bank/job.toml", "bank/overhead.toml", "bank-5/dropout.toml", "bank-5/dropout-with-duration.toml"]
    assert printed.out.splitlines() == [str(tmp_path / job) for job in jobs]
    assert printed.err == f"Bank Marketing, 45211 rows, from bank-full.csv in {bank}\n"
    assert main(["check", printed.out.splitlines()[0]]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bank", "bank-5"]


def test_a_partition_of_another_name_ends_with_2_and_tells_the_names(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        partitions("bank-6")
    assert ended.value.code == 2
    assert "argument NAME: expected one of bank, bank-5, bank-8, adult, " in capsys.readouterr().err


def test_without_a_command_of_its_own_paper_says_how_it_goes(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["paper"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: vfedsec paper")


def test_a_file_that_is_not_the_published_one_ends_with_1_and_one_line(tmp_path: Path, capsys: Captured) -> None:
    small_bank(tmp_path)
    assert partitions("bank", "--data-dir", tmp_path, "--to", tmp_path / "out") == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"error: {tmp_path}/bank-full.csv: expected the published file of 4610348 bytes")
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert not (tmp_path / "out").exists()


def test_a_data_set_that_is_nowhere_keeps_no_other_from_being_dealt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def nowhere(name: str, *_: object) -> None:
        asked.append(name)
        raise DataError(f"{name} is nowhere")

    asked: list[str] = []
    monkeypatch.setattr(datasets, "load", nowhere)
    assert partitions("bank", "bank-5", "adult", "--to", tmp_path / "out") == 1
    assert asked == ["bank", "adult"]
    assert capsys.readouterr().err == "error: bank is nowhere\nerror: adult is nowhere\n"


def test_a_folder_that_cannot_be_written_ends_with_1_and_one_line(bank: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("")
    assert partitions("bank", "--data-dir", bank, "--to", tmp_path / "file") == 1
    assert "expected a file that can be written, found: Not a directory" in capsys.readouterr().err


def test_a_download_shows_what_has_arrived_and_no_share_of_a_whole(tmp_path: Path) -> None:
    (tmp_path / "earlier").write_bytes(bytes(5_000))
    console = Console(force_terminal=True, width=120, record=True)
    with watched(console)(Fetch("Adult", tmp_path)):
        (tmp_path / "arff.gz").write_bytes(bytes(2_000))
        time.sleep(0.6)  # it looks every half second
    shown = console.export_text()
    assert "fetching Adult from OpenML" in shown
    assert "2.0 kB arrived" in shown
    assert "%" not in shown


def test_a_download_is_a_line_where_nobody_looks(tmp_path: Path) -> None:
    console = Console(force_terminal=False, width=120, record=True)
    with watched(console)(Fetch("Adult", tmp_path / "not-made-yet")):
        pass
    assert console.export_text() == "fetching Adult from OpenML ...\n"
