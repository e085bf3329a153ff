"""Data sets come from OpenML through scikit-learn where no file is at hand; here from its cache, never the network."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from published import SIDE, drawn, known_emnist, small_adult, small_bank
from vfedsec.data.datasets.catalogue import EMNIST
from vfedsec.data.datasets.loading import load_images, load_table
from vfedsec.data.datasets.openml import Fetch
from vfedsec.errors import DataError

Column = tuple[str, str]
NUMBER = "NUMERIC"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """scikit-learn's own folder, and nothing beyond it."""

    def no_network(*_: object, **__: object) -> object:
        raise URLError("no network")

    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.delenv("VFEDSEC_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", no_network)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return tmp_path / "home"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A folder without data sets."""
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


def keep(home: Path, number: int, columns: Sequence[Column], rows: Sequence[str], md5: str = "") -> None:
    """What scikit-learn keeps of a data set that it fetched; the last column is the target."""
    arff = "\n".join(["@RELATION r", *(f"@ATTRIBUTE {name} {kind}" for name, kind in columns), "@DATA", *rows]) + "\n"
    features = [
        {
            "index": str(place),
            "name": name,
            "data_type": "numeric" if kind == NUMBER else "nominal",
            "is_target": str(place == len(columns) - 1).lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for place, (name, kind) in enumerate(columns)
    ]
    description = {
        "id": str(number),
        "name": "r",
        "version": "1",
        "status": "active",
        "format": "ARFF",
        "description": "",
        "url": f"https://openml.invalid/data/{number}.arff",
        "md5_checksum": md5 or hashlib.md5(arff.encode()).hexdigest(),
    }
    put(home, f"api/v1/json/data/{number}", {"data_set_description": description})
    put(home, f"api/v1/json/data/features/{number}", {"data_features": {"feature": features}})
    qualities = [{"name": "NumberOfInstances", "value": str(float(len(rows)))}]
    put(home, f"api/v1/json/data/qualities/{number}", {"data_qualities": {"quality": qualities}})
    put(home, f"data/{number}.arff", arff)


def put(home: Path, path: str, content: Any) -> None:
    file = home / "openml" / "openml.org" / f"{path}.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress((content if isinstance(content, str) else json.dumps(content)).encode()))


BANK_COLUMNS = [("V1", NUMBER), ("V2", "{management,technician}"), ("Class", "{1,2}")]
BANK_ROWS = ["58,management,1", "44,technician,2", "33,management,1"]


def test_a_table_gets_its_published_names_and_classes_back(home: Path, empty: Path) -> None:
    keep(home, 1461, BANK_COLUMNS, BANK_ROWS)
    bank = load_table(small_bank(home), empty)
    assert bank.columns == {"age": ["58", "44", "33"], "job": ["management", "technician", "management"]}
    assert (bank.labels, bank.source) == (["no", "yes", "no"], "OpenML's data set 1461")


def test_missing_values_are_question_marks_again_and_the_order_of_rows_says_nothing(home: Path, empty: Path) -> None:
    columns = [
        ("age", NUMBER),
        ("sex", "{Male,Female}"),
        ("workclass", "{Private,State-gov}"),
        ("class", "{<=50K,>50K}"),
    ]
    keep(home, 1590, columns, ["25,Male,Private,<=50K", "50,Female,?,>50K", "39,Male,State-gov,<=50K"])
    adult = load_table(small_adult(home), empty)
    assert adult.columns["workclass"] == ["Private", "?", "State-gov"]
    assert adult.columns["gender"] == ["Male", "Female", "Male"]
    assert (adult.labels, adult.train_rows) == (["<=50K", ">50K", "<=50K"], None)


def keep_emnist(home: Path, rows: Sequence[str]) -> None:
    pixels = [(f"pixel{place}", NUMBER) for place in range(SIDE * SIDE)]
    keep(home, 41039, [*pixels, ("class", "{0,1}")], rows)


def pixel_rows(transposed: bool) -> list[str]:
    """Images whose first, a 7, has its ink at the bottom left when transposed."""
    images = drawn(3)
    images[0] = 0
    images[0, 0, 2:] = 255
    shown = images.swapaxes(1, 2) if transposed else images
    return [",".join(map(str, [*image.ravel(), label])) for image, label in zip(shown, (0, 1, 1), strict=True)]


@pytest.mark.parametrize("transposed", [False, True])
def test_images_come_upright_and_under_the_name_of_what_they_are(home: Path, empty: Path, transposed: bool) -> None:
    keep_emnist(home, pixel_rows(transposed))
    emnist = load_images(known_emnist(EMNIST.files), empty)
    assert (emnist.images[0, 0, 2:] == 255).all()
    assert (emnist.images[1:] == drawn(3)[1:]).all()
    assert (emnist.labels, emnist.name, emnist.train_rows) == (["7", "L", "L"], "EMNIST balanced", None)


@pytest.mark.parametrize("row", [",".join(["256"] * SIDE**2 + ["0"]), ",".join(["-1"] * SIDE**2 + ["0"])])
def test_pixels_that_are_no_bytes_are_refused(home: Path, empty: Path, row: str) -> None:
    keep_emnist(home, [row] * 3)
    with pytest.raises(
        DataError, match=r"OpenML's data set 41039: expected EMNIST.*, found an array \(3, 16\) instead"
    ):
        load_images(known_emnist(EMNIST.files), empty)


def test_another_number_of_images_is_refused(home: Path, empty: Path) -> None:
    keep_emnist(home, pixel_rows(False)[:2])
    with pytest.raises(DataError, match="OpenML's data set 41039: expected 3 rows, found 2"):
        load_images(known_emnist(EMNIST.files), empty)


def test_labels_that_are_no_numbers_are_refused(home: Path, empty: Path) -> None:
    pixels = [(f"pixel{place}", NUMBER) for place in range(SIDE * SIDE)]
    rows = [row[:-1] + "x" for row in pixel_rows(False)]
    keep(home, 41039, [*pixels, ("class", "{x,y}")], rows)
    with pytest.raises(DataError, match="found labels that are no numbers"):
        load_images(known_emnist(EMNIST.files), empty)


def test_a_table_without_a_known_column_is_refused(home: Path, empty: Path) -> None:
    keep(home, 1461, [("V1", NUMBER), ("V3", "{a}"), ("Class", "{1,2}")], ["1,a,1"])
    with pytest.raises(DataError, match=r"OpenML's data set 1461: expected Bank Marketing as .*, found no column 'V2'"):
        load_table(small_bank(home), empty)


def test_a_table_with_other_classes_is_refused(home: Path, empty: Path) -> None:
    keep(home, 1461, [*BANK_COLUMNS[:2], ("Class", "{1,2,3}")], [*BANK_ROWS[:2], "33,management,3"])
    with pytest.raises(DataError, match="OpenML's data set 1461: expected rows of 2 classes, found others or fewer"):
        load_table(small_bank(home), empty)


def test_a_file_that_does_not_have_the_digest_openml_tells_is_not_used(home: Path, empty: Path) -> None:
    keep(home, 1461, BANK_COLUMNS, BANK_ROWS, md5="0" * 32)
    # scikit-learn throws it away and asks again, and there is no network.
    with pytest.raises(DataError, match="no network"):
        load_table(small_bank(home), empty)
    assert not (home / "openml" / "openml.org" / "data" / "1461.arff.gz").exists()


def test_without_a_network_one_line_tells_what_was_tried_and_what_to_do(home: Path, empty: Path) -> None:
    home.mkdir()
    with pytest.raises(DataError) as refused:
        load_table(small_bank(home), empty)
    assert str(refused.value) == (
        f"Bank Marketing is not to be had: looked for bank-full.csv in {empty}, then for OpenML's data set 1461: "
        "<urlopen error no network>; name a folder with the files by --data-dir or VFEDSEC_DATA"
    )


def test_without_any_folder_the_line_says_so(home: Path) -> None:
    home.mkdir()
    with pytest.raises(DataError, match=r"looked for bank-full.csv in no folder, as none was named, then for OpenML's"):
        load_table(small_bank(home))


def test_without_scikit_learn_the_extra_is_named(home: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    known = small_bank(home)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(
        DataError, match=r"scikit-learn is not installed \(pip install 'vfedsec\[experiments\]'\); name"
    ):
        load_table(known, empty)


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "file" / "home"))
    with pytest.raises(DataError, match=r"1461: no folder for downloads: .*Not a directory"):
        load_table(small_bank(tmp_path), empty)


def test_a_download_can_be_watched(home: Path, empty: Path) -> None:
    keep(home, 1461, BANK_COLUMNS, BANK_ROWS)
    seen = []

    @contextmanager
    def watch(fetch: Fetch) -> Iterator[None]:
        seen.append(fetch)
        yield
        seen.append("done")

    load_table(small_bank(home), empty, watch)
    assert seen == [Fetch("Bank Marketing", home / "openml"), "done"]
