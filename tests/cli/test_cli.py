"""Commands as people run them: what they print, what they leave, how they end."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from vfedsec import __version__
from vfedsec.cli import file_reference, main
from vfedsec.cli.reference import reference
from vfedsec.crypto.keys import Identity
from vfedsec.data.demo import write_demo
from vfedsec.experiments import bench_align, bench_secure_layer, bench_training
from vfedsec.trace import RunEnded, RunStarted, read_trace

CUSTOMERS = 1_500
DOCS = Path(__file__).parent.parent.parent / "docs"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def job_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"), customers=CUSTOMERS, epochs=2)


def edited(job_file: Path, old: str, new: str) -> Path:
    """The same job with one thing changed, beside it."""
    text = job_file.read_text()
    assert old in text
    path = job_file.with_name("edited.toml")
    path.write_text(text.replace(old, new))
    return path


def simulate(*arguments: object) -> int:
    return main(["simulate", *map(str, arguments)])


# -- the program --


def test_the_version_is_printed(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"vfedsec {__version__}\n")


def test_help_comes_at_once() -> None:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        text = subprocess.check_output([sys.executable, "-m", "vfedsec", "--help"], text=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
    assert all(command in text for command in ("demo", "simulate", "check", "bench", "keygen"))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["simulate"],
        ["simulate", "job.toml", "--threads", "0"],
        ["simulate", "job.toml", "--threads", "many"],
        ["demo", "--word-bits", "8"],
        ["demo", "--epochs", "0"],
        ["bench", "everything"],
        ["bench", "align", "--ids", "1"],
        ["bench", "align", "--ids", "many"],
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_how_it_goes(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: vfedsec")


def interrupted() -> dict[str, float]:
    raise KeyboardInterrupt


def test_ctrl_c_ends_with_130_and_a_word(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(bench_secure_layer, "run", interrupted)
    assert main(["bench", "secure-layer", "--json"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_an_error_that_is_not_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> dict[str, float]:
        raise ZeroDivisionError

    monkeypatch.setattr(bench_secure_layer, "run", broken)
    with pytest.raises(ZeroDivisionError):
        main(["bench", "secure-layer", "--json"])


@pytest.mark.parametrize("arguments", [["check"], ["simulate", "--json"]])
def test_a_reader_that_goes_away_is_no_drama(job_file: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as output:
        command = [sys.executable, "-m", "vfedsec", *arguments, str(job_file)]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


def test_the_documentation_is_what_the_parsers_say() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == reference()


def test_the_documentation_of_files_is_what_the_structs_say() -> None:
    text = file_reference.reference()
    assert (DOCS / "files.md").read_text(encoding="utf-8") == text
    assert not [line for line in text.splitlines() if line.endswith("|  |")], "a key without a meaning"


# -- simulate --


def test_simulate_prints_metrics_and_costs(job_file: Path, capsys: Captured) -> None:
    assert simulate(job_file) == 0
    printed = capsys.readouterr()
    assert all(word in printed.out for word in ("AUC", "log loss", "bank", "retailer", "aggregator"))
    assert "aligning rows" in printed.err
    assert "round 8/8" in printed.err


def test_simulate_gives_json_and_nothing_else_on_stdout(job_file: Path, capsys: Captured) -> None:
    assert simulate(job_file, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert sum(report["rounds"].values()) == 8
    assert 0 < report["metrics"]["auc"] < 1
    assert report["history"][-1]["metrics"] == report["metrics"]
    assert report["provenance"]["job"] == "demo"


def test_simulate_writes_trace_predictions_and_plot(job_file: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("trace.jsonl", "predictions.csv", "curve.png")]
    assert simulate(job_file, "--trace", files[0], "--predictions", files[1], "--plot", files[2], "--threads", 2) == 0
    events = read_trace(files[0])
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunEnded)
    with files[1].open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len({row["id"] for row in rows}) == CUSTOMERS
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    assert files[2].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("option", ["--trace", "--predictions", "--plot"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    job_file: Path, tmp_path: Path, option: str, capsys: Captured
) -> None:
    assert simulate(job_file, option, tmp_path / "missing" / "file.png") == 1
    assert capsys.readouterr().err.endswith("expected a file that can be written, found: No such file or directory\n")


def test_a_plot_without_matplotlib_is_refused_before_the_work(
    job_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert simulate(job_file, "--plot", tmp_path / "curve.png") == 1
    assert capsys.readouterr().err.startswith("error: expected matplotlib")
    assert not (tmp_path / "curve.png").exists()


def without_columns(job_file: Path) -> Path:
    return edited(job_file, '"purchases_per_month",', '"no_such_column",')


def without_party_files(job_file: Path) -> Path:
    return edited(job_file, 'retailer = "retailer.toml"', "")


def with_numbers_that_overflow(job_file: Path) -> Path:
    return edited(job_file, "word_bits = 32", "word_bits = 16\nrange_bits = 15")


def with_a_network_of_a_strange_package(job_file: Path) -> Path:
    return edited(job_file, 'name = "mlp"\noptions = { hidden = [32] }', 'name = "strange.package:Net"')


def with_a_bottom_model_of_strange_options(job_file: Path) -> Path:
    return edited(job_file, "# The retailer is alone", "model = { options = { hiden = 3 } }\n# The retailer is alone")


def that_is_no_toml(job_file: Path) -> Path:
    return edited(job_file, "[task]", "[task")


def that_is_not_there(job_file: Path) -> Path:
    return job_file.with_name("none.toml")


@pytest.mark.parametrize("command", ["simulate", "check"])
@pytest.mark.parametrize(
    ("job_of", "message"),
    [
        (without_columns, "no_such_column"),
        (without_party_files, "expected the file of every party, found none for 'retailer'"),
        (with_numbers_that_overflow, "edited.toml [security.range_bits]: expected at most"),
        (with_a_network_of_a_strange_package, "edited.toml [top.model]: import path 'strange.package:Net'"),
        (with_a_bottom_model_of_strange_options, "edited.toml [groups[0].model.options.hiden]: expected a key of"),
        (that_is_no_toml, "expected TOML"),
        (that_is_not_there, "expected a readable file"),
    ],
)
def test_a_job_that_cannot_be_run_ends_with_1_and_one_line(
    job_file: Path, command: str, job_of: Callable[[Path], Path], message: str, capsys: Captured
) -> None:
    assert main([command, str(job_of(job_file))]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = [line for line in printed.err.splitlines() if not line.endswith(" ...")]
    assert line.startswith("error: ")
    assert message in line


# -- bench --


@pytest.mark.parametrize(
    ("what", "module", "figures"),
    [
        ("align", bench_align, {"intersection_ok": True, "ids": 100_000, "cpu_over_bare": 1.04}),
        ("secure-layer", bench_secure_layer, {"mask_over_keystream": 0.93}),
        ("training", bench_training, {"concat": {"exchanges_per_round": 1.0}}),
    ],
)
def test_bench_prints_a_table_or_json(
    what: str, module: object, figures: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(module, "run", lambda *arguments: figures)
    assert main(["bench", what, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == figures
    assert main(["bench", what]) == 0
    printed = capsys.readouterr()
    assert "measuring ..." in printed.err
    expected = {
        "align": "intersection ok",
        "secure-layer": "mask over keystream",
        "training": "concat: exchanges per round",
    }
    assert expected[what] in printed.out


def test_ids_are_for_the_alignment_alone(capsys: Captured) -> None:
    assert main(["bench", "training", "--ids", "100"]) == 1
    assert "error: expected --ids with 'align' only" in capsys.readouterr().err


def test_as_many_ids_are_aligned_as_were_asked_for(capsys: Captured) -> None:
    assert main(["bench", "align", "--ids", "60", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ids"] == 60


# -- keygen --


def test_keygen_writes_a_key_for_its_owner_alone_and_prints_the_public_half(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "bank.pem"
    assert main(["keygen", str(path)]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert capsys.readouterr().out == Identity.from_pem(path.read_bytes()).public.text() + "\n"


def test_keygen_makes_another_key_every_time(tmp_path: Path, capsys: Captured) -> None:
    for name in ("one.pem", "two.pem"):
        main(["keygen", str(tmp_path / name)])
    assert len(set(capsys.readouterr().out.split())) == 2


def test_keygen_never_overwrites(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "bank.pem"
    path.write_text("mine")
    assert main(["keygen", str(path)]) == 1
    assert "keys are never overwritten" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_keygen_into_no_folder_is_an_error(tmp_path: Path, capsys: Captured) -> None:
    assert main(["keygen", str(tmp_path / "missing" / "bank.pem")]) == 1
    assert "found: No such file or directory" in capsys.readouterr().err
