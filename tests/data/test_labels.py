"""Labels as numbers."""

import numpy as np
import pytest

from vfedsec.config.job import Task
from vfedsec.data.labels import encode_labels
from vfedsec.data.table import Table
from vfedsec.errors import DataError


def encoded(label, **task):
    ids = [str(row) for row in range(len(label))]
    return encode_labels(Table.from_columns("bank", ids, {}, label), Task(**task))


@pytest.mark.parametrize(
    "label",
    [
        ["0", "1"],
        [0, 1],
        [0.0, 1.0],
        ["0.0", "1.0"],
        ["False", "TRUE"],
        ["no", "Yes"],
        [False, True],
    ],
)
def test_binary_labels_have_usual_names(label):
    np.testing.assert_array_equal(encoded(label), [0, 1])


def test_binary_classes_are_negative_then_positive():
    np.testing.assert_array_equal(encoded(["died", "lived"], classes=("lived", "died")), [1, 0])


def test_multiclass_labels_are_places_in_the_list():
    classes = ("red", "green", "blue")
    labels = encoded(["blue", "red", "green"], kind="multiclass", classes=classes)
    np.testing.assert_array_equal(labels, [2, 0, 1])


def test_regression_targets_stay_as_they_are():
    np.testing.assert_array_equal(encoded(["1.5", "-3e2"], kind="regression"), [1.5, -300])


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_labels_are_float32(kind):
    assert encoded(["0", "1"], kind=kind, classes=("0", "1")).dtype == np.float32


@pytest.mark.parametrize("label", [["0", "2"], ["1", "private"]])
def test_a_label_outside_the_classes_is_refused_with_its_row(label):
    with pytest.raises(DataError, match="party bank, memory, data row 2: the label is none of"):
        encoded(label)


def test_an_unseen_class_is_refused_naming_the_classes():
    with pytest.raises(DataError, match=r"data row 1: the label is none of .*: a, b, c"):
        encoded(["d"], kind="multiclass", classes=("a", "b", "c"))


@pytest.mark.parametrize("value", ["tall", "inf", "nan", "1e39"])
def test_a_target_that_is_no_finite_number_is_refused_with_its_row(value):
    with pytest.raises(DataError, match="data row 2: the label is not a finite number"):
        encoded(["1", value], kind="regression")


def test_a_table_without_labels_is_refused():
    with pytest.raises(DataError, match="has no label"):
        encode_labels(Table.from_columns("bank", ["a"], {}), Task())
