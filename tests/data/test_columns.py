"""Columns as one of the three kinds."""

import numpy as np
import pytest

from vfedsec.data.columns import kind_of, numbers, texts, truths
from vfedsec.data.table import Table
from vfedsec.errors import DataError


def table(values, kind=None):
    ids = [str(row) for row in range(len(values))]
    return Table.from_columns("bank", ids, {"x": values}, kinds={"x": kind} if kind else None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-2.5", "3e4", None], "numeric"),
        ([1, 2, None], "numeric"),
        (["1", "2", "A"], "categorical"),
        (["1_2", "3_4"], "categorical"),
        (["true", "False", None], "boolean"),
        (["Yes", "no"], "boolean"),
        ([True, False], "boolean"),
        (["yes", "no", "maybe"], "categorical"),
        (["0", "1"], "numeric"),
        ([*map(str, range(9)), "n.a."], "numeric"),
        ([*map(str, range(8)), "n.a."], "categorical"),
        ([None, None], "numeric"),
    ],
)
def test_a_kind_is_inferred_from_the_values(values, kind):
    assert kind_of(table(values), "x") == kind


def test_a_declared_kind_wins():
    assert kind_of(table(["1", "2"], "categorical"), "x") == "categorical"


def test_texts_are_parsed_as_numbers():
    np.testing.assert_array_equal(numbers(table(["1.5", None, "-2"]), "x"), [1.5, np.nan, -2])


def test_numbers_read_as_texts_look_as_in_a_file():
    assert texts(table([1.0, 2.5, None]), "x") == ["1", "2.5", None]


def test_declared_booleans_may_be_digits_and_letters():
    values = truths(table(["1", "0", "T", "n", None]), "x")
    np.testing.assert_array_equal(values, [1, 0, 1, 0, np.nan])


def test_a_text_among_numbers_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"party bank, memory, column 'x', data row 2: .* a text"):
        numbers(table(["1", "old", "older"], "numeric"), "x")


@pytest.mark.parametrize("value", ["inf", "-1e101"])
def test_a_number_too_large_to_standardise_is_refused_with_its_row(value):
    with pytest.raises(DataError, match="data row 3: a number is infinite or beyond 1e"):
        numbers(table(["1", None, value]), "x")


def test_what_is_not_boolean_is_refused_with_its_row():
    with pytest.raises(DataError, match="data row 2: a boolean column holds something else"):
        truths(table(["yes", "perhaps"], "boolean"), "x")


def test_a_refused_cell_is_not_shown():
    with pytest.raises(DataError) as caught:
        numbers(table(["private"], "numeric"), "x")
    assert "private" not in str(caught.value)


def test_one_text_among_numbers_is_refused_and_the_way_out_told():
    cells = [*map(str, range(30)), "n.a."]
    with pytest.raises(DataError, match=r"data row 31: a numeric column holds a text; if it is to be categorical, say"):
        numbers(table(cells), "x")
    with pytest.raises(DataError, match=r"data row 31: a numeric column holds a text$"):
        numbers(table(cells, "numeric"), "x")
