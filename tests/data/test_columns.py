"""Columns as one of the kinds."""

import datetime as dt

import numpy as np
import pytest

from vfedsec.data.columns import kind_of, numbers, pixels, seconds, texts, truths
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
        (["2024-02-29", "2024-03-01 12:30", None], "date"),
        (["2024-02-29", "soon"], "categorical"),
        (["2024-02-30"], "categorical"),
        (["20240229"], "numeric"),
        ([dt.date(2024, 2, 29), None], "date"),
        (np.zeros((2, 3, 3), np.uint8), "image"),
    ],
)
def test_a_kind_is_inferred_from_the_values(values, kind):
    assert kind_of(table(values), "x") == kind


def test_a_declared_kind_wins():
    assert kind_of(table(["1", "2"], "categorical"), "x") == "categorical"


def test_texts_are_parsed_as_numbers():
    np.testing.assert_array_equal(numbers(table(["1.5", None, "-2"]), "x"), [1.5, np.nan, -2])


def test_numbers_read_as_texts_look_as_in_a_file():
    assert texts(table([1.0, 2.5, None]), "x").cells() == ["1", "2.5", None]


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01", 0),
        ("1970-01-02T00:00", 86400),
        ("1970-01-01 00:00:01.5", 1.5),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01 00:00:00Z", 0),
        ("1969-12-31", -86400),
    ],
)
def test_iso_texts_are_read_as_dates(text, found):
    np.testing.assert_array_equal(seconds(table([text, None]), "x"), [found, np.nan])


@pytest.mark.parametrize(
    "text", ["2024-13-01", "01.02.2024", "2024-W01-1", "2024-02-30", "0000-01-01", "2024-01-01 25:00"]
)
def test_what_is_no_date_is_refused_with_its_row(text):
    with pytest.raises(DataError, match="column 'x', data row 2: a date column holds something else than ISO dates"):
        seconds(table(["2024-01-01", text], "date"), "x")


def test_dates_read_as_texts_look_as_in_a_file():
    column = table([dt.date(2024, 2, 3), dt.datetime(2024, 2, 3, 4, 5), None], "categorical")
    assert texts(column, "x").cells() == ["2024-02-03", "2024-02-03 04:05:00", None]


EAST = dt.timezone(dt.timedelta(hours=5))


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime.max, "9999-12-31"),  # the nearest float is midnight
        (dt.datetime.min, "0001-01-01"),
        (dt.datetime.min.replace(tzinfo=EAST), "0001-01-01 00:00:00"),
    ],
)
def test_dates_at_the_ends_of_time_have_a_text(moment, text):
    assert texts(table([moment], "categorical"), "x").cells() == [text]


def test_dates_without_any_value_are_numbers_if_need_be():
    np.testing.assert_array_equal(numbers(table(np.array(["NaT"], "M8[us]")), "x"), [np.nan])


def test_dates_are_no_numbers():
    with pytest.raises(DataError, match="column 'x': a numeric column holds dates"):
        numbers(table([dt.date(2024, 2, 3)], "numeric"), "x")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([1, 2], "image", "the kind is declared image, and the column is no array of pixels"),
        (
            np.zeros((2, 3, 3), np.uint8),
            "numeric",
            "the kind is declared numeric, and the column is an array of pixels",
        ),
    ],
)
def test_pixels_are_pixels_whatever_is_declared(values, kind, message):
    with pytest.raises(DataError, match=message):
        kind_of(table(values, kind), "x")


def test_what_holds_no_pixels_is_not_read_as_such():
    with pytest.raises(DataError, match="the column is no array of pixels"):
        pixels(table(["a"]), "x")


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -2e6])
def test_a_pixel_that_is_no_sensible_number_is_refused_with_its_row(pixel):
    images = np.zeros((3, 2, 2), np.float32)
    images[1, 0, 1] = pixel
    with pytest.raises(DataError, match="column 'x', data row 2: a pixel is no number"):
        pixels(table(images), "x")
