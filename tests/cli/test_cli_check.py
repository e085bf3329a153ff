"""`vfedsec check`: whatever `simulate` would refuse, it refuses, without a round."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from vfedsec.cli import main
from vfedsec.data.demo import write_demo

Captured = pytest.CaptureFixture[str]
Row = dict[str, str]


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    return write_demo(tmp_path / "demo", customers=400, epochs=1)


def change_table(job_file: Path, name: str, change: Callable[[int, Row], Row]) -> None:
    """Write a party's table anew, row by row."""
    path = job_file.with_name(name)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(change(number, row) for number, row in enumerate(rows))


def test_check_prints_roles_slices_numbers_and_bytes(job_file: Path, capsys: Captured) -> None:
    assert main(["check", str(job_file)]) == 0
    printed = capsys.readouterr().out
    assert "Job 'demo' is sound, and so are the files and tables of its parties." in printed
    assert "An update is 4 B a parameter" in printed
    assert "32-bit words; [-4, 4] is spread over 2^27 integers" in printed
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line}
    assert rows["bank"] == ["bank", "active", "7", "15", "0-47", "53.2", "kB"]
    assert rows["telco_north"] == ["telco_north", "group", "telco", "7", "14", "0-23", "24.6", "kB", "+", "update"]
    assert rows["retailer"] == ["retailer", "group", "retail", "6", "15", "24-47", "24.6", "kB"]


def test_check_of_a_job_without_party_files_says_what_it_did_not_see(job_file: Path, capsys: Captured) -> None:
    text = job_file.read_text()
    bare = job_file.with_name("bare.toml")
    bare.write_text(text[: text.index("[parties]")])
    assert main(["check", str(bare)]) == 0
    assert "It names no files of parties, so none were looked at." in capsys.readouterr().out


def with_a_network_of_torch(job_file: Path, *, has_files: bool) -> Path:
    """The same job with a top model by import path."""
    text = job_file.read_text()
    built_in = 'name = "mlp"\noptions = { hidden = [32] }'
    assert built_in in text
    path = job_file.with_name("torch.toml")
    text = text.replace(built_in, 'name = "torch.nn:Linear"')
    path.write_text(text if has_files else text[: text.index("[parties]")])
    return path


@pytest.mark.parametrize("has_files", [True, False])
def test_networks_are_checked_with_and_without_party_files(job_file: Path, has_files: bool, capsys: Captured) -> None:
    assert main(["check", str(with_a_network_of_torch(job_file, has_files=has_files))]) == 1
    assert "not on the allow-list" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["simulate", "check"])
def test_a_package_that_is_allowed_may_be_named(job_file: Path, command: str) -> None:
    path = with_a_network_of_torch(job_file, has_files=True)
    assert main([command, str(path), "--allow-package", "torch"]) == 0


def with_class_weights(job_file: Path, weights: str) -> Path:
    text = job_file.read_text()
    path = job_file.with_name("weighted.toml")
    path.write_text(text.replace('kind = "binary"', f'kind = "binary"\nclass_weights = {weights}'))
    return path


@pytest.mark.parametrize("command", ["simulate", "check"])
@pytest.mark.parametrize("weights", ['"balanced"', "[1, 4.5]"])
def test_a_job_may_weigh_its_classes(job_file: Path, command: str, weights: str, capsys: Captured) -> None:
    assert main([command, str(with_class_weights(job_file, weights))]) == 0


def test_weights_of_classes_that_there_are_not_are_refused(job_file: Path, capsys: Captured) -> None:
    assert main(["check", str(with_class_weights(job_file, "[1, 2, 3]"))]) == 1
    assert "[task.class_weights]: expected a number for each of the 2 classes, found 3" in capsys.readouterr().err


def a_typo(job_file: Path) -> None:
    change_table(job_file, "telco_north.csv", lambda n, row: row | ({"data_gb": "n.a."} if n == 30 else {}))


def decimal_commas(job_file: Path) -> None:
    change_table(job_file, "telco_north.csv", lambda n, row: row | {"data_gb": row["data_gb"].replace(".", ",") + "x"})


def a_third_class(job_file: Path) -> None:
    change_table(job_file, "bank.csv", lambda n, row: row | ({"defaulted": "2"} if n == 11 else {}))


def a_network_for_images(job_file: Path) -> None:
    text = job_file.read_text()
    job_file.write_text(text.replace('name = "retail"', 'name = "retail"\nmodel = { name = "cnn" }'))


@pytest.mark.parametrize("command", ["check", "simulate"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (a_typo, "telco_north.csv, column 'data_gb', data row 31: a numeric column holds a text; if it is to be"),
        (decimal_commas, "column 'data_gb' is categorical for telco_north, numeric for telco_south"),
        (a_third_class, "bank.csv, column 'defaulted', data row 12: the label is none of the task's classes"),
        (a_network_for_images, "job.toml [groups[1].model]: network 'cnn' needs the option shape"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_its_place(
    job_file: Path, command: str, spoil: Callable[[Path], None], message: str, capsys: Captured
) -> None:
    spoil(job_file)
    assert main([command, str(job_file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_a_column_of_texts_that_are_all_different_is_warned_of(job_file: Path, capsys: Captured) -> None:
    """In a group of several, that is: what a lone party holds is told to nobody."""
    change_table(job_file, "retailer.csv", lambda n, row: row | {"favourite_category": f"comment {n}"})
    assert main(["check", str(job_file)]) == 0
    assert capsys.readouterr().err == ""
    for name in ("telco_north.csv", "telco_south.csv"):
        change_table(job_file, name, lambda n, row, name=name: row | {"plan": f"comment {n} in {name}"})
    assert main(["check", str(job_file)]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "warning: column 'plan' holds mostly different texts, and all parties of telco are told all"
