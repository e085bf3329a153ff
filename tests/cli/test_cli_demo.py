"""`vfedsec demo`: from nothing to a comparison."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from vfedsec.cli import main
from vfedsec.trace import RoundEnded, read_trace

CUSTOMERS = 1_500
Captured = pytest.CaptureFixture[str]


def demo(folder: Path, *more: object) -> int:
    arguments = ["--folder", folder, "--customers", CUSTOMERS, "--epochs", 2, *more]
    return main(["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("somewhere") / "demo"
    assert demo(folder) == 0
    return folder


def test_the_folder_gets_results_trace_and_curves(folder: Path) -> None:
    results = json.loads((folder / "results.json").read_text())
    assert set(results) == {"comparison", "provenance"}
    assert (folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    rounds = [event for event in read_trace(folder / "trace.jsonl") if isinstance(event, RoundEnded)]
    assert sum(event.kind == "train" for event in rounds) == results["comparison"]["pad"]["rounds"]


def test_a_second_demo_uses_the_same_files_and_gives_the_same_numbers(folder: Path, capsys: Captured) -> None:
    before = (folder / "bank.csv").stat().st_mtime_ns
    first = json.loads((folder / "results.json").read_text())["comparison"]
    assert demo(folder, "--json") == 0
    second = json.loads(capsys.readouterr().out)
    assert (folder / "bank.csv").stat().st_mtime_ns == before
    assert {name: one["auc"] for name, one in second.items()} == {
        name: first[name]["metrics"]["auc"] for name in ("alone", "pad", "discard", "pooled")
    }


def test_json_has_the_four_with_rounds_and_bytes(folder: Path, capsys: Captured) -> None:
    assert demo(folder, "--json") == 0
    four = json.loads(capsys.readouterr().out)
    assert set(four) == {"alone", "pad", "discard", "pooled"}
    assert all({"auc", "rounds", "rounds_used", "bytes"} <= one.keys() for one in four.values())


def test_a_simulation_of_the_demos_job_ends_as_the_demo_did(folder: Path, capsys: Captured) -> None:
    assert main(["simulate", str(folder / "job.toml"), "--json"]) == 0
    results = json.loads((folder / "results.json").read_text())
    assert json.loads(capsys.readouterr().out)["metrics"] == results["comparison"]["pad"]["metrics"]


def test_the_four_are_printed_as_a_table(folder: Path, capsys: Captured) -> None:
    assert demo(folder) == 0
    printed = capsys.readouterr()
    for name in ("bank alone", "federated, pad", "federated, discard", "all columns pooled"):
        assert name in printed.out
    assert "results.json, trace.jsonl, curves.png" in printed.err


def test_words_of_16_bits_move_fewer_bytes(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    assert demo(folder, "--json") == 0
    full = json.loads(capsys.readouterr().out)
    assert demo(tmp_path / "half", "--word-bits", 16, "--json") == 0
    assert json.loads(capsys.readouterr().out)["pad"]["bytes"] < 0.9 * full["pad"]["bytes"]


def test_a_folder_with_another_demo_is_left_alone(folder: Path, capsys: Captured) -> None:
    before = (folder / "job.toml").read_bytes()
    assert demo(folder, "--seed", 8) == 1
    assert "choose another folder" in capsys.readouterr().err
    assert (folder / "job.toml").read_bytes() == before


def test_without_matplotlib_the_demo_says_how_to_get_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert demo(tmp_path / "demo") == 0
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "demo" / "curves.png").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--customers", "99"], "expected a demo of from 100 to 500000 customers, found 99"),
        (["--seed", "-1"], "expected a demo seed from 0 to"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, arguments: list[str], message: str, capsys: Captured) -> None:
    assert main(["demo", "--folder", str(tmp_path / "demo"), *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "demo").write_text("mine")
    assert demo(tmp_path / "demo") == 1
    assert capsys.readouterr().err.startswith("error: expected a folder")


def test_a_result_file_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "results.json").mkdir()
    assert demo(tmp_path) == 1
    assert "expected a file that can be written, found: Is a directory" in capsys.readouterr().err


def test_a_second_demo_moves_as_many_bytes_as_the_first(tmp_path: Path, capsys: Captured) -> None:
    moved = []
    for _ in range(2):
        assert demo(tmp_path / "demo", "--json") == 0
        moved.append(json.loads(capsys.readouterr().out)["pad"]["bytes"])
    assert moved[0] == pytest.approx(moved[1], rel=1e-3)
    assert not (tmp_path / "demo" / ".vfedsec").exists()
