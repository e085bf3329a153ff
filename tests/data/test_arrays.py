"""Tables made of arrays: `.npz`, `.npy` and IDX."""

import gzip
import struct

import numpy as np
import pytest

from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.encoding import Encoder
from vfedsec.data.sources import load
from vfedsec.data.summaries import summarise

IMAGES = np.random.default_rng(3).integers(0, 256, (5, 4, 3), dtype=np.uint8)
DIGITS = np.array([3, 1, 4, 1, 5], np.uint8)
IDX_CODES = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}


def idx_bytes(array):
    head = struct.pack(f">HBB{array.ndim}I", 0, IDX_CODES[array.dtype.name], array.ndim, *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def read(folder, columns, with_label=True, **data):
    source = DataSource(**{"id": "#", "label": "label", **data})
    return load(PartyFile(name="bank", data=source), folder, columns, with_label)


@pytest.mark.parametrize("suffix", ["-ubyte", ".gz"])
def test_idx_files_make_the_columns_of_a_table(tmp_path, suffix):
    pack = gzip.compress if suffix == ".gz" else bytes
    (tmp_path / f"i{suffix}").write_bytes(pack(idx_bytes(IMAGES)))
    (tmp_path / f"l{suffix}").write_bytes(pack(idx_bytes(DIGITS)))
    table = read(tmp_path, ["image"], arrays={"image": f"i{suffix}", "label": f"l{suffix}"})
    assert table.ids == ["1", "2", "3", "4", "5"]
    assert table.label == ["3", "1", "4", "1", "5"]
    np.testing.assert_array_equal(table.columns["image"], IMAGES)


@pytest.mark.parametrize("kind", IDX_CODES)
def test_idx_numbers_of_every_type_are_read(tmp_path, kind):
    numbers = np.array([1, 2, 100], kind)
    (tmp_path / "x-ubyte").write_bytes(idx_bytes(numbers))
    np.testing.assert_array_equal(read(tmp_path, ["x"], False, arrays={"x": "x-ubyte"}).columns["x"], [1, 2, 100])


def test_npy_files_make_columns_too(tmp_path):
    np.save(tmp_path / "i.npy", IMAGES)
    table = read(tmp_path, ["image"], False, arrays={"image": "i.npy"})
    np.testing.assert_array_equal(table.columns["image"], IMAGES)


def test_an_npz_holds_ids_labels_texts_numbers_and_images(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        id=np.array(["a", " b"]),
        label=np.array(["no", "yes"]),
        town=np.array(["Ulm ", "NA"]),
        member=np.array([True, False]),
        age=np.array([30, 40]),
        image=IMAGES[:2],
    )
    table = read(tmp_path, ["town", "member", "age", "image"], source="t.npz", id="id")
    assert (table.ids, table.label) == (["a", "b"], ["no", "yes"])
    assert table.columns["town"].cells() == ["Ulm", None]
    assert table.columns["member"].cells() == ["true", "false"]
    np.testing.assert_array_equal(table.columns["age"], [30, 40])
    features = Encoder(summarise(table, ["image"])).transform(table)
    np.testing.assert_allclose(features, IMAGES[:2].reshape(2, 12) / 255, rtol=1e-6)


def test_missing_labels_and_ids_are_known_by_the_party_files_tokens(tmp_path):
    np.savez(tmp_path / "t.npz", id=np.array(["a", "b"]), label=np.array(["x", "y"]))
    table = read(tmp_path, [], source="t.npz", id="id", missing=("z",))
    assert table.label == ["x", "y"]


@pytest.mark.parametrize("other", [np.array(7), np.array([]), np.zeros((3, 1))], ids=["scalar", "empty", "longer"])
def test_arrays_that_nobody_asks_for_do_not_matter(tmp_path, other):
    np.savez(tmp_path / "t.npz", about=other, x=np.array([1.0, 2.0]))
    table = read(tmp_path, ["x"], False, source="t.npz")
    assert table.ids == ["1", "2"]


def test_long_codes_stay_apart(tmp_path):
    codes = [2**53, 2**53 + 1]
    np.savez(tmp_path / "t.npz", label=np.array(codes), x=np.array(codes))
    table = read(tmp_path, ["x"], source="t.npz", kinds={"x": "categorical"})
    assert table.label == table.columns["x"].cells() == [str(code) for code in codes]


def test_an_empty_text_is_missing_whatever_else_the_party_file_calls_so(tmp_path):
    np.savez(tmp_path / "t.npz", id=np.array(["a", "b", "c"]), town=np.array(["", "z", "Ulm"]))
    table = read(tmp_path, ["town"], with_label=False, source="t.npz", id="id", missing=("z",))
    assert table.columns["town"].cells() == [None, None, "Ulm"]
