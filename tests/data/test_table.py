"""Tables in memory."""

import datetime as dt

import numpy as np
import pytest

from vfedsec.data.cells import number_text
from vfedsec.data.table import Table
from vfedsec.errors import DataError


def table(**columns):
    rows = len(next(iter(columns.values())))
    return Table.from_columns("bank", [f"id{i}" for i in range(rows)], columns)


def test_numbers_become_floats_with_nan_where_missing():
    column = table(age=[1, None, 2.5, float("nan")]).column("age")
    np.testing.assert_array_equal(column, [1.0, np.nan, 2.5, np.nan])


def test_an_integer_array_becomes_floats():
    assert table(age=np.array([1, 2])).column("age").dtype == np.float64


def test_texts_keep_their_cells_and_none():
    assert table(town=["a", None, "b"]).column("town").cells() == ["a", None, "b"]


@pytest.mark.parametrize("values", [[True, False, None], np.array([True, False, None])])
def test_booleans_become_words(values):
    assert table(member=values).column("member").cells() == ["true", "false", None]


def test_a_numpy_boolean_array_becomes_words():
    assert table(member=np.array([True, False])).column("member").cells() == ["true", "false"]


def test_a_mixture_of_texts_and_numbers_becomes_texts():
    assert table(code=["A", 7, 1.5, None]).column("code").cells() == ["A", "7", "1.5", None]


def test_a_column_of_nothing_but_missing_values_is_accepted():
    assert table(age=[None, None]).column("age").cells() == [None, None]


def test_a_zone_with_seconds_is_a_zone():
    zone = dt.timezone(dt.timedelta(minutes=53, seconds=28))
    seconds = table(born=[dt.datetime(1890, 1, 1, tzinfo=zone), None]).column("born").seconds
    np.testing.assert_array_equal(seconds, [dt.datetime(1890, 1, 1, tzinfo=zone).timestamp(), np.nan])


@pytest.mark.parametrize("day", ["20000-01-01", "-0044-03-15"])
def test_dates_of_other_years_than_a_text_can_name_are_refused(day):
    with pytest.raises(DataError, match="column 'x', data row 2: a date is not of the years 1 to 9999"):
        table(x=np.array(["2024-01-01", day], "datetime64[D]"))


def test_whole_numbers_too_large_for_a_float_are_infinite_and_as_ids_what_they_are():
    assert table(x=[10**400]).column("x").tolist() == [np.inf]
    assert Table.from_columns("bank", [10**400], {}).ids == [str(10**400)]


def test_integer_ids_become_texts():
    assert Table.from_columns("bank", np.array([3, 10]), {}).ids == ["3", "10"]


def test_space_around_an_id_does_not_count():
    assert Table.from_columns("bank", [" a", "b "], {}).ids == ["a", "b"]


def test_labels_become_texts():
    assert Table.from_columns("bank", [1, 2], {}, label=[0.0, 1.0]).label == ["0", "1"]


def test_length_is_the_number_of_rows():
    assert len(table(age=[1, 2, 3])) == 3


def test_repr_shows_no_cells():
    shown = repr(Table.from_columns("bank", ["secret-id"], {"town": ["secret-town"]}, ["secret"]))
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": []}, "party bank, memory: holds no rows"),
        ({"ids": ["a", ""]}, "party bank, memory, data row 2: the id is missing"),
        ({"ids": ["a", None]}, "data row 2: the id is missing"),
        ({"ids": ["a", "b", "a"]}, "data row 3: the id repeats that of data row 1"),
        ({"ids": [1.5]}, "data row 1: an id is a text or an integer, not float"),
        ({"ids": [True]}, "data row 1: an id is a text or an integer, not bool"),
        ({"ids": ["\ud800"]}, "data row 1: a text is not valid Unicode"),
        ({"ids": ["a"], "columns": {"age": [1, 2]}}, "column 'age' has 2 values for 1 ids"),
        ({"ids": ["a"], "columns": {"x": [b"raw"]}}, "column 'x', data row 1: a cell is a number"),
        ({"ids": ["a"], "label": ["x", "y"]}, "the label has 2 values for 1 ids"),
        ({"ids": ["a", "b"], "label": ["x", None]}, "data row 2: the label is missing"),
    ],
)
def test_what_a_table_may_not_be(arguments, message):
    with pytest.raises(DataError) as caught:
        Table.from_columns("bank", **{"columns": {}, **arguments})
    assert message in str(caught.value)


def test_a_column_that_is_not_there_names_those_that_are():
    with pytest.raises(DataError, match=r"column 'aeg': has no such column; it has \['age'\]"):
        table(age=[1]).column("aeg")


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (-0.5, "-0.5"), (1e22, str(10**22))])
def test_whole_numbers_are_written_without_a_point(value, text):
    assert number_text(value) == text


def test_a_column_with_several_values_a_row_is_refused():
    with pytest.raises(DataError, match=r"party bank, memory, column 'x': a column has one value a row, not 2 axes"):
        Table.from_columns("bank", ["1", "2"], {"x": np.zeros((2, 3))})


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(1970, 1, 2), None],
        [dt.datetime(1970, 1, 2), None],
        [dt.datetime(1970, 1, 2, tzinfo=dt.UTC), None],
        np.array(["1970-01-02", "NaT"], "datetime64[D]"),
    ],
)
def test_dates_become_seconds(values):
    np.testing.assert_array_equal(table(since=values).column("since").seconds, [86400, np.nan])


def test_dates_among_texts_are_texts():
    assert table(x=[dt.date(2024, 2, 3), "soon"]).column("x").cells() == ["2024-02-03", "soon"]


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3, 3, 1)])
def test_an_array_of_images_is_kept_as_it_is(shape):
    images = np.zeros(shape, np.uint8)
    assert table(image=images).column("image") is images


def test_a_label_is_no_date():
    with pytest.raises(DataError, match="column 'label': a label is a number or a text"):
        Table.from_columns("bank", ["a"], {}, label=[dt.date(2024, 1, 1)])
