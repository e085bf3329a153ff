"""What commands write and say: no file is lost, and a run that learned nothing does not look like one that did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vfedsec.cli import main
from vfedsec.data.demo import write_demo
from vfedsec.trace import Aligning, read_trace

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return write_demo(tmp_path / "demo", customers=400, epochs=1)


def simulate(*arguments: object) -> int:
    return main(["simulate", *map(str, arguments)])


@pytest.mark.parametrize("option", ["--trace", "--predictions", "--plot"])
@pytest.mark.parametrize("name", ["job.toml", "bank.toml", "retailer.csv", "../demo/retailer.csv"])
def test_what_is_read_is_not_written(job_file: Path, option: str, name: str, capsys: Captured) -> None:
    path = job_file.parent / name
    before = path.read_bytes()
    assert simulate(job_file, option, path) == 1
    assert f"expected another file for {option}: this is a file that this command reads" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_two_outputs_do_not_share_a_file(job_file: Path, tmp_path: Path, capsys: Captured) -> None:
    assert simulate(job_file, "--trace", tmp_path / "out", "--predictions", tmp_path / "out") == 1
    assert "expected another file for --predictions: this is what --trace writes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_picture_of_a_kind_that_cannot_be_drawn_is_refused_before_the_work(
    job_file: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert simulate(job_file, "--plot", tmp_path / "curve.xyz") == 1
    printed = capsys.readouterr()
    assert "expected a name that ends in one of" in printed.err
    assert "reading the tables" not in printed.err


@pytest.mark.parametrize("arguments", [["check"], ["simulate"], ["simulate", "--json"]])
def test_a_full_disk_is_told_in_one_line(job_file: Path, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "vfedsec", *arguments, str(job_file)]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "error: No space left on device"
    assert "Traceback" not in ended.stderr


def test_threads_are_those_that_were_asked_for(job_file: Path) -> None:
    before = torch.get_num_threads()
    try:
        assert simulate(job_file, "--threads", 3) == 0
        assert torch.get_num_threads() == 3
        assert simulate(job_file) == 0
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_simulate_says_who_holds_how_many_rows(job_file: Path, capsys: Captured) -> None:
    assert simulate(job_file) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "rows to use" in line]
    assert line.startswith("bank has 400 rows to use; held by telco_north: ")
    assert "retailer: 3" in line


def test_a_party_that_shares_no_row_is_warned_of(job_file: Path, capsys: Captured) -> None:
    table = job_file.with_name("retailer.csv")
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, *("X" + row for row in rows)]))
    assert simulate(job_file) == 0
    assert "warning: retailer holds none of them, so its columns cannot help" in capsys.readouterr().err


def test_a_run_none_of_whose_rounds_could_be_used_is_warned_of(job_file: Path, capsys: Captured) -> None:
    text = job_file.read_text().replace("drop_probability = 0.3", "drop_probability = 1\ndrop_proportion = 1")
    job_file.write_text(text.replace('policy = "pad"', 'policy = "discard"'))
    assert simulate(job_file) == 0
    assert "warning: no round could be used: the network is as it was drawn" in capsys.readouterr().err


def test_a_run_says_that_rows_match_as_remembered(job_file: Path, capsys: Captured) -> None:
    told = []
    for _ in range(2):
        assert main(["simulate", str(job_file)]) == 0
        told.append("the rows match as the parties remember them" in capsys.readouterr().err)
    assert told == [False, True]


def test_a_trace_tells_of_the_alignment_and_that_a_second_run_skips_it(job_file: Path, tmp_path: Path) -> None:
    aligned = []
    for _ in range(2):
        assert simulate(job_file, "--trace", tmp_path / "trace.jsonl") == 0
        events = [event for event in read_trace(tmp_path / "trace.jsonl") if isinstance(event, Aligning)]
        aligned.append({event.party for event in events})
    assert aligned == [{"bank", "telco_north", "telco_south", "retailer"}, set()]


def test_a_damaged_memory_is_warned_of(job_file: Path, capsys: Captured) -> None:
    assert simulate(job_file) == 0
    for path in (job_file.parent / ".vfedsec").iterdir():
        path.write_bytes(b"scratched")
    assert simulate(job_file) == 0
    assert capsys.readouterr().err.count("remembered of its alignment with") == 6
