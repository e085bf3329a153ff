"""`vfedsec check party.toml`: what an owner sees of its own table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vfedsec.cli import main

Captured = pytest.CaptureFixture[str]

TABLE = """id,age,town,since,member,code,bought
a1,30,Ulm,2020-01-31,yes,1,0
a2,,Bonn,2021-02-28,no,2,1
a3,41.5,Ulm,,yes,1,0
a4,29,Trier,2022-03-31,no,1,0
a5,33,Ulm,2020-04-30,no,2,0
a6,34,hidden,2020-05-31,no,2,0
"""


@pytest.fixture
def party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "140")
    (tmp_path / "t.csv").write_text(TABLE)
    path = tmp_path / "party.toml"
    data = 'source = "t.csv"\nid = "id"\nlabel = "bought"\nkinds = { code = "categorical" }'
    path.write_text(f'name = "shop"\n[data]\n{data}\n')
    return path


def lines_of(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


@pytest.mark.parametrize("width", [80, 140])
def test_every_column_is_shown_with_kind_features_and_five_rows(
    party: Path, width: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["check", str(party)]) == 0
    printed = capsys.readouterr().out
    lines = lines_of(printed)
    assert "The table of 'shop': 6 rows of" in printed
    for kind in ("age numeric inferred 2 1", "town categorical inferred 4", "since date inferred 6 1"):
        assert kind.split() in lines
    for kind in ("member boolean inferred 1", "code categorical declared 2"):
        assert kind.split() in lines
    for cells in ("id a1 a2 a3 a4 a5", "age 30 41.5 29 33", "town Ulm Bonn Ulm Trier Ulm", "code 1 2 1 1 2"):
        assert cells.split() in lines
    for cells in ("since 2020-01-31 2021-02-28 2022-03-31 2020-04-30", "member yes no yes no no", "bought 0 1 0 0 0"):
        assert cells.split() in lines
    assert "15 features in all." in printed
    assert "Label 'bought': 0 (83.3%), 1 (16.7%)" in printed
    assert "hidden" not in printed, "the sixth row"


def test_a_table_without_a_label_and_with_images_is_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    np.savez(tmp_path / "t.npz", image=np.full((2, 4, 3), 51, np.uint8))
    path = tmp_path / "party.toml"
    path.write_text('name = "shop"\ndata = { source = "t.npz", id = "#" }\n')
    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr().out
    assert ["image", "image", "inferred", "12"] in lines_of(printed)
    assert ["image", "4x3,", "mean", "51", "4x3,", "mean", "51"] in lines_of(printed)
    assert "Label" not in printed


def test_a_label_of_many_values_is_counted(party: Path, capsys: Captured) -> None:
    rows = "".join(f"a{row},{row}\n" for row in range(20))
    (party.parent / "t.csv").write_text(f"id,bought\n{rows}")
    party.write_text('name = "shop"\ndata = { source = "t.csv", id = "id", label = "bought" }\n')
    assert main(["check", str(party)]) == 0
    assert "Label 'bought': 20 different values" in capsys.readouterr().out


def test_what_a_terminal_would_obey_is_not_printed(party: Path, capsys: Captured) -> None:
    (party.parent / "t.csv").write_text("id,a[red]b,bought\nx\x1b[2J,\x1b]0;title\x07[bold],0\ny,z,1\n")
    party.write_text('name = "shop"\ndata = { source = "t.csv", id = "id", label = "bought" }\n')
    assert main(["check", str(party)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "\x07" not in printed
    assert "a[red]b" in printed and "[bold]" in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "shop"\ndata = { source = "no.csv", id = "id" }', "no.csv: the file cannot be read: No such file"),
        ('name = "shop"\ndata = { source = "t.csv", id = "key" }', "t.csv, column 'key': there is no such column"),
        ('name = "shop"\ndata = { id = "key" }', "[data.source]: expected a file name, or data.query, or data.arrays"),
        ("name = ", "party.toml: expected TOML"),
    ],
)
def test_a_party_file_that_is_wrong_is_refused(party: Path, text: str, message: str, capsys: Captured) -> None:
    party.write_text(text)
    assert main(["check", str(party)]) == 1
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""
