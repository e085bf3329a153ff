"""The demo folder is one a user could have written, and worth federating."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from vfedsec.config.load import load_job, load_party
from vfedsec.data.demo import write_demo
from vfedsec.errors import DataError

CUSTOMERS = 4_000
PARTIES = ("bank", "telco_north", "telco_south", "retailer")
MISSING = ("", "NA")

Row = dict[str, str]
Rows = dict[str, Row]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo"), customers=CUSTOMERS).parent


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, Rows]:
    return {name: read(folder / f"{name}.csv") for name in PARTIES}


def read(path: Path) -> Rows:
    with path.open(newline="") as stream:
        return {row.pop("customer_id"): row for row in csv.DictReader(stream)}


def encoded(rows: list[Row]) -> NDArray[np.float64]:
    """Numbers standardised, with the mean where missing; one column for each text."""
    columns: list[NDArray[np.float64]] = []
    for name in rows[0]:
        cells = [row[name] for row in rows]
        try:
            numbers = np.array([np.nan if cell in MISSING else float(cell) for cell in cells])
        except ValueError:
            columns += [np.array([cell == text for cell in cells]) for text in sorted(set(cells))]
            continue
        columns.append(np.nan_to_num((numbers - np.nanmean(numbers)) / np.nanstd(numbers)))
    return np.stack(columns, axis=1).astype(np.float64)


def held_out_auc(features: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    half = len(labels) // 2
    model = LogisticRegression(max_iter=1000).fit(features[:half], labels[:half])
    return float(roc_auc_score(labels[half:], model.predict_proba(features[half:])[:, 1]))


def test_the_job_and_every_party_file_load(folder: Path) -> None:
    job = load_job(folder / "job.toml")
    assert set(job.parties) == {job.active.party, *job.passive_parties} == set(PARTIES)
    for name, path in job.parties.items():
        party = load_party(folder / path)
        assert party.name == name
        assert (folder / party.data.source).is_file()


def test_only_the_bank_names_a_label(folder: Path) -> None:
    labels = {name: load_party(folder / f"{name}.toml").data.label for name in PARTIES}
    assert labels == {name: "defaulted" if name == "bank" else "" for name in PARTIES}


def test_the_job_names_the_columns_that_the_tables_have(folder: Path, tables: dict[str, Rows]) -> None:
    job = load_job(folder / "job.toml")
    expected = {"bank": (*job.active.columns, "defaulted")}
    expected |= {party: group.columns for group in job.groups for party in group.parties}
    for name, rows in tables.items():
        assert set(next(iter(rows.values()))) == set(expected[name])


def test_the_same_seed_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_demo(tmp_path, customers=CUSTOMERS)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in tmp_path.iterdir())
    assert all((folder / name).read_bytes() == (tmp_path / name).read_bytes() for name in names)


def test_another_seed_writes_other_tables(folder: Path, tmp_path: Path) -> None:
    write_demo(tmp_path, seed=8, customers=CUSTOMERS)
    for name in PARTIES:
        assert (folder / f"{name}.csv").read_bytes() != (tmp_path / f"{name}.csv").read_bytes()


def test_the_bank_has_the_customers_asked_for(tables: dict[str, Rows]) -> None:
    assert len(tables["bank"]) == CUSTOMERS


def test_the_others_know_part_of_the_customers_and_outsiders(tables: dict[str, Rows]) -> None:
    for name, share in {"telco_north": 0.45, "telco_south": 0.45, "retailer": 0.85}.items():
        shared = len(tables[name].keys() & tables["bank"].keys()) / CUSTOMERS
        assert shared == pytest.approx(share, abs=0.04)
        assert len(tables[name].keys() - tables["bank"].keys()) > CUSTOMERS // 10


def test_nobody_is_with_both_telephone_companies(tables: dict[str, Rows]) -> None:
    assert not tables["telco_north"].keys() & tables["telco_south"].keys()


def test_every_table_has_an_order_of_its_own(tables: dict[str, Rows]) -> None:
    known = [person for person in tables["bank"] if person in tables["retailer"]]
    assert known != [person for person in tables["retailer"] if person in tables["bank"]]
    place = {person: row for row, person in enumerate(tables["retailer"])}
    order = np.array([place[person] for person in known], dtype=np.float64)
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.1


def test_about_one_customer_in_six_defaults(tables: dict[str, Rows]) -> None:
    labels = [row["defaulted"] for row in tables["bank"].values()]
    assert set(labels) == {"0", "1"}
    assert 0.14 < labels.count("1") / CUSTOMERS < 0.21


def test_each_region_has_a_plan_that_the_other_has_not(tables: dict[str, Rows]) -> None:
    north, south = ({row["plan"] for row in tables[name].values()} for name in ("telco_north", "telco_south"))
    assert (north - south, south - north) == ({"fibre-bundle"}, {"student-sim"})


def test_values_are_missing_in_some_columns_of_every_table(tables: dict[str, Rows]) -> None:
    for name, rows in tables.items():
        shares = [np.mean([row[column] in MISSING for row in rows.values()]) for column in next(iter(rows.values()))]
        assert 0 in shares, name
        assert 0.02 < max(shares) < 0.12, name


def test_all_columns_together_tell_much_more_than_the_banks(tables: dict[str, Rows]) -> None:
    telco = tables["telco_north"] | tables["telco_south"]
    common = [one for one in tables["bank"] if one in telco and one in tables["retailer"]]
    labels = np.array([float(tables["bank"][one]["defaulted"]) for one in common])
    own = [{name: cell for name, cell in tables["bank"][one].items() if name != "defaulted"} for one in common]
    alone = encoded(own)
    others = [encoded([table[one] for one in common]) for table in (telco, tables["retailer"])]
    assert held_out_auc(np.hstack([alone, *others]), labels) - held_out_auc(alone, labels) > 0.06


def test_a_demo_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    write_demo(tmp_path, customers=100)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    write_demo(tmp_path, customers=100)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_file_of_the_demo_that_is_gone_is_written_again(tmp_path: Path) -> None:
    write_demo(tmp_path, customers=100)
    content = (tmp_path / "bank.csv").read_bytes()
    (tmp_path / "bank.csv").unlink()
    write_demo(tmp_path, customers=100)
    assert (tmp_path / "bank.csv").read_bytes() == content


def test_a_demo_of_other_numbers_is_not_overwritten(tmp_path: Path) -> None:
    write_demo(tmp_path, customers=100, epochs=1)
    with pytest.raises(DataError, match=r"expected a folder without a job\.toml, found one .* would not write"):
        write_demo(tmp_path, customers=100, epochs=2)


def test_epochs_and_word_bits_stand_in_the_job(tmp_path: Path) -> None:
    job = load_job(write_demo(tmp_path, customers=100, epochs=3, word_bits=16))
    assert (job.training.epochs, job.security.word_bits) == (3, 16)


@pytest.mark.parametrize("epochs", [0, 10_001])
def test_epochs_out_of_range_are_refused(tmp_path: Path, epochs: int) -> None:
    with pytest.raises(DataError, match=r"expected a demo of 1 to 10000 epochs, found"):
        write_demo(tmp_path, customers=100, epochs=epochs)


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "retailer.csv").write_text("mine")
    with pytest.raises(DataError, match=r"expected a folder without a retailer\.csv, found one"):
        write_demo(tmp_path, customers=100)
    assert [path.name for path in tmp_path.iterdir()] == ["retailer.csv"]


@pytest.mark.parametrize(("seed", "customers"), [(-1, 100), (2**63, 100), (7, 99), (7, 500_001)])
def test_numbers_out_of_range_are_refused(tmp_path: Path, seed: int, customers: int) -> None:
    with pytest.raises(DataError, match=r"expected a demo .* from .*, found"):
        write_demo(tmp_path, seed, customers)


def test_the_smallest_demo_is_whole(tmp_path: Path) -> None:
    job = load_job(write_demo(tmp_path / "new" / "demo", customers=100))
    assert all((tmp_path / "new" / "demo" / path).is_file() for path in job.parties.values())
