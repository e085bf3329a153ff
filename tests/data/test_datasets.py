"""Data sets are read from published files, and anything else of that name is refused."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from published import (
    SMALL_ADULT,
    SMALL_BANK,
    drawn,
    emnist_arrays,
    idx,
    published,
    small_adult,
    small_bank,
    small_emnist,
    small_fashion_mnist,
)
from vfedsec.data.datasets import KNOWN, ImageDataset, TableDataset, load
from vfedsec.data.datasets.catalogue import EMNIST, KnownColumn
from vfedsec.data.datasets.images import upright
from vfedsec.data.datasets.loading import load_images, load_table
from vfedsec.errors import DataError

# -- tables --


def test_a_bank_table_is_read(tmp_path: Path) -> None:
    bank = load_table(small_bank(tmp_path), tmp_path)
    assert bank.columns == {"age": ["58", "44", "33"], "job": ["management", "technician", "management"]}
    assert (bank.labels, bank.classes, bank.train_rows) == (["no", "yes", "no"], ("no", "yes"), None)
    assert bank.source == f"bank-full.csv in {tmp_path}"


def test_adult_is_its_training_file_and_then_its_test_file(tmp_path: Path) -> None:
    adult = load_table(small_adult(tmp_path), tmp_path)
    assert adult.columns["age"] == ["39", "50", "25"]
    assert adult.columns["workclass"] == ["State-gov", "?", "Private"]
    assert (adult.labels, adult.train_rows) == (["<=50K", ">50K", "<=50K"], 2)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (SMALL_BANK.replace(b'"job"', b'"work"'), "a header other than age;job;y"),
        (SMALL_BANK + b"1;2\n", "2 cells instead of 3 in row 5"),
        (SMALL_BANK.replace(b"management", b"\xff"), "'ascii' codec can't decode"),
        (SMALL_BANK.replace(b'"technician"', b'"technician"x'), "';' expected after"),
        (b"", "a header other than"),
    ],
)
def test_a_bank_table_of_another_form_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    with pytest.raises(DataError, match=f"bank-full.csv: expected the table as published, found: {found}"):
        load_table(small_bank(tmp_path, content), tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SMALL_BANK[: SMALL_BANK.rindex(b"33")], "expected 3 rows, found 2"),
        (SMALL_BANK.replace(b"technician", b"management"), "expected 2 categories in column 'job', found 1"),
        (SMALL_BANK.replace(b"technician", b"?"), "expected no missing value in column 'job', found otherwise"),
        (SMALL_BANK.replace(b'"yes"', b'"maybe"'), "expected rows of 2 classes, found others or fewer"),
    ],
)
def test_a_bank_table_of_another_content_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=f"bank-full.csv in {tmp_path}: {message}"):
        load_table(small_bank(tmp_path, content), tmp_path)


def test_adult_without_missing_values_is_refused(tmp_path: Path) -> None:
    contents = (SMALL_ADULT[0].replace(b"?", b"Private"), SMALL_ADULT[1])
    with pytest.raises(DataError, match="expected missing values in column 'workclass', found otherwise"):
        load_table(small_adult(tmp_path, contents), tmp_path)


def test_a_row_of_adult_that_is_too_short_is_refused(tmp_path: Path) -> None:
    contents = (SMALL_ADULT[0] + b"12, Private\n", SMALL_ADULT[1])
    with pytest.raises(DataError, match=r"adult.data: expected the table as published, found: 2 cells instead of 4"):
        load_table(small_adult(tmp_path, contents), tmp_path)


# -- images --


def test_emnist_is_read_with_its_characters_as_labels(tmp_path: Path) -> None:
    emnist = load_images(small_emnist(tmp_path, emnist_arrays()), tmp_path)
    assert np.array_equal(emnist.images, drawn(3))
    assert (emnist.labels, emnist.train_rows, emnist.name) == (["7", "L", "L"], 2, "EMNIST, 47 classes, own split")


def test_fashion_mnist_is_read(tmp_path: Path) -> None:
    fashion = load_images(small_fashion_mnist(tmp_path), tmp_path)
    assert np.array_equal(fashion.images, drawn(3))
    assert (fashion.labels, fashion.train_rows) == (["Coat", "Bag", "Bag"], 2)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"train_x": drawn(3)}, r"uint8 \(3, 4, 4\) and uint8 \(2,\) instead of bytes \(2, 4, 4\)"),
        ({"train_x": drawn(2).astype(np.float32)}, r"float32 \(2, 4, 4\) and"),
        ({"test_y": np.array([[1]], np.uint8)}, r"uint8 \(1, 1\) instead of"),
        ({"test_y": np.array([1], np.int64)}, r"int64 \(1,\) instead of"),
        ({"mapping": np.array(["L", "7"])}, r"a mapping of \(2,\) to other characters than the 2 known"),
        (
            {"mapping": np.array(["7", object()], dtype=object)},
            "Object arrays cannot be loaded when allow_pickle=False",
        ),
    ],
)
def test_emnist_with_other_arrays_is_refused(tmp_path: Path, changed: dict[str, np.ndarray], found: str) -> None:
    with pytest.raises(DataError, match=f"emnist47.npz: expected images as published, found: .*{found}"):
        load_images(small_emnist(tmp_path, emnist_arrays() | changed), tmp_path)


@pytest.mark.parametrize("name", list(emnist_arrays()))
def test_emnist_that_lacks_an_array_is_refused(tmp_path: Path, name: str) -> None:
    arrays = {key: array for key, array in emnist_arrays().items() if key != name}
    with pytest.raises(DataError, match=f"emnist47.npz: expected images as published, found: .*{name}"):
        load_images(small_emnist(tmp_path, arrays), tmp_path)


@pytest.mark.parametrize("labels", [[0, 0], [0, 2]])
def test_images_of_other_classes_are_refused(tmp_path: Path, labels: list[int]) -> None:
    changed = {"train_y": np.array(labels, np.uint8), "test_y": np.array([0], np.uint8)}
    with pytest.raises(DataError, match="expected rows of 2 classes, found others or fewer"):
        load_images(small_emnist(tmp_path, emnist_arrays() | changed), tmp_path)


def test_too_few_images_are_refused(tmp_path: Path) -> None:
    known = replace(small_emnist(tmp_path, emnist_arrays()), rows=4)
    with pytest.raises(DataError, match="expected 4 rows, found 3"):
        load_images(known, tmp_path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (idx(drawn(2))[:-20], "Compressed file ended before the end-of-stream marker was reached"),
        (b"no gzip at all", "Not a gzipped file"),
        (gzip.compress(b"\0\0\x0d\x01\0\0\0\0"), r"float32 \(0,\) and uint8 \(2,\) instead of bytes"),
        (gzip.compress(b""), "it does not begin as an IDX file does"),
        (gzip.compress(b"\0\0\x08\x03\0\0"), "it does not begin as an IDX file does"),
        (gzip.compress(gzip.decompress(idx(drawn(2)))[:-1]), "its head promises 32 bytes of data, and it has 31"),
        (gzip.compress(bytes(10_000)), "it does not begin as an IDX file does"),
        (idx(drawn(100)), "it claims to hold 1600 bytes, and 48 are the most that is read"),
        (idx(drawn(3)), r"uint8 \(3, 4, 4\) and uint8 \(2,\) instead of bytes"),
    ],
)
def test_a_damaged_idx_file_is_refused(tmp_path: Path, content: bytes, found: str) -> None:
    known = small_fashion_mnist(tmp_path, {"train-images-idx3-ubyte.gz": content})
    with pytest.raises(
        DataError, match=f"train-images-idx3-ubyte.gz.*: expected images as published, found: .*{found}"
    ):
        load_images(known, tmp_path)


# -- which files --


def test_a_file_of_another_length_is_refused(tmp_path: Path) -> None:
    known = small_bank(tmp_path)
    for content, found in ((SMALL_BANK * 1000, "more"), (SMALL_BANK[:-1], str(len(SMALL_BANK) - 1))):
        (tmp_path / "bank-full.csv").write_bytes(content)
        with pytest.raises(
            DataError, match=f"bank-full.csv: expected the published file of {len(SMALL_BANK)} bytes, found {found}$"
        ):
            load_table(known, tmp_path)


def test_a_file_with_another_checksum_is_refused_and_both_are_told(tmp_path: Path) -> None:
    known = small_bank(tmp_path)
    (tmp_path / "bank-full.csv").write_bytes(SMALL_BANK.replace(b"58", b"59"))
    expected = f"bank-full.csv: expected the published file, SHA-256 {known.files[0].sha256}, found [0-9a-f]{{64}}$"
    with pytest.raises(DataError, match=expected):
        load_table(known, tmp_path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    known = small_bank(tmp_path)
    (tmp_path / "bank-full.csv").unlink()
    (tmp_path / "bank-full.csv").mkdir()
    with pytest.raises(DataError, match=r"bank-full.csv: expected a readable file, found: Is a directory"):
        load_table(known, tmp_path)


def test_a_folder_with_only_some_of_the_files_is_refused(tmp_path: Path) -> None:
    known = small_adult(tmp_path)
    (tmp_path / "adult.test").unlink()
    with pytest.raises(DataError, match=r"Adult: expected adult.data, adult.test in .*, found no adult.test"):
        load_table(known, tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(DataError, match=r"Adult: expected a folder with data sets at .*/nowhere, found none"):
        load("adult", nowhere)
    monkeypatch.setenv("VFEDSEC_DATA", str(nowhere))
    with pytest.raises(
        DataError, match=r"expected a folder with data sets at .*/nowhere, which VFEDSEC_DATA names, found none"
    ):
        load("adult")


def test_the_folder_that_is_named_goes_before_the_variable_and_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, variable, package = (tmp_path / name for name in ("named", "variable", "package"))
    for folder in (named, variable, package):
        folder.mkdir()
        known = small_fashion_mnist(folder)
    known = replace(known, files=tuple(replace(file, folder=str(package)) for file in known.files))
    monkeypatch.setenv("VFEDSEC_DATA", str(variable))
    assert load_images(known, named).source.endswith(f" in {named}")
    assert load_images(known).source.endswith(f" in {variable}")
    monkeypatch.setenv("VFEDSEC_DATA", "")
    assert load_images(known).source.endswith(f" in {package}")
    for path in named.iterdir():
        path.unlink()
    assert load_images(known, named).source.endswith(f" in {package}")


def test_a_data_set_of_another_name_is_refused() -> None:
    with pytest.raises(DataError, match="expected a data set of bank, adult, emnist, fashion-mnist, found 'iris'"):
        load("iris")


def test_a_column_is_as_wide_as_its_categories_and_the_missing_one() -> None:
    assert [KnownColumn().width, KnownColumn(3).width, KnownColumn(3, has_missing=True).width] == [1, 3, 4]


# -- the published files, where they are --


@pytest.mark.parametrize(
    ("key", "rows", "train_rows", "counts"),
    [
        ("bank", 45_211, None, {"no": 39_922, "yes": 5_289}),
        ("adult", 48_842, 32_561, {"<=50K": 37_155, ">50K": 11_687}),
        ("emnist", 114_585, 95_785, None),
        ("fashion-mnist", 70_000, 60_000, dict.fromkeys(KNOWN["fashion-mnist"].classes, 7_000)),
    ],
)
def test_the_published_rows_and_classes_are_all_there(
    key: str, rows: int, train_rows: int | None, counts: dict[str, int] | None
) -> None:
    dataset = published(key)
    assert (len(dataset), dataset.train_rows) == (rows, train_rows)
    found = Counter(dataset.labels)
    assert set(found) == set(dataset.classes)
    assert counts is None or found == counts


def test_the_test_part_of_emnist_is_balanced() -> None:
    dataset = published("emnist")
    assert set(Counter(dataset.labels[dataset.train_rows :]).values()) == {400}


def test_the_published_tables_begin_as_they_do() -> None:
    bank = published("bank")
    assert isinstance(bank, TableDataset)
    first = "58 management married tertiary no 2143 yes no unknown 5 may 261 1 -1 0 unknown"
    assert " ".join(cells[0] for cells in bank.columns.values()) == first
    adult = published("adult")
    assert isinstance(adult, TableDataset)
    assert adult.columns["native-country"].count("?") == 857
    assert [adult.columns["age"][place] for place in (0, 32_561)] == ["39", "25"]


def test_images_are_upright_also_when_a_copy_has_them_transposed() -> None:
    emnist = published("emnist")
    assert isinstance(emnist, ImageDataset)
    images = emnist.images[emnist.train_rows :]
    numbers = np.array([emnist.classes.index(label) for label in emnist.labels[emnist.train_rows :]])
    for copy in (images, images.swapaxes(1, 2)):
        assert np.array_equal(upright(EMNIST, copy, numbers), images)
