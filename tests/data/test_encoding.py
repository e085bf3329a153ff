"""Encodings: one column, and the same whether rows are pooled or spread over parties."""

import datetime as dt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_out import ROWS, columns_of, splits, table
from vfedsec.data.encoding import Encoder
from vfedsec.data.summaries import ColumnSummary, ToldKind, merge, summarise
from vfedsec.errors import DataError


def encoder(columns, kinds=None, **options):
    whole = table(columns, kinds)
    return Encoder(summarise(whole, list(columns)), **options)


def encoded(columns, kinds=None, **options):
    return encoder(columns, kinds, **options).transform(table(columns, kinds))


def merged(*parts):
    tables = {f"p{i}": table(part, party=f"p{i}") for i, part in enumerate(parts)}
    return merge({party: summarise(t, list(t.columns)) for party, t in tables.items()})


def test_numbers_are_standardised():
    features = encoded({"x": [1, 2, 3, 6]})
    np.testing.assert_allclose(features[:, 0], np.array([-2, -1, 0, 3]) / np.sqrt(3.5), rtol=1e-6)


def test_a_large_offset_costs_no_precision():
    plain = np.random.default_rng(1).normal(size=1000)
    np.testing.assert_allclose(encoded({"x": plain + 1e9}), encoded({"x": plain}), atol=1e-5)


@pytest.mark.parametrize("value", [0.1, 1e9 + 0.3, 0.0])
def test_a_constant_column_becomes_zeros(value):
    np.testing.assert_array_equal(encoded({"x": [value] * 7}), np.zeros((7, 1)))


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e9, 1e9), st.lists(st.integers(1, 50), min_size=2, max_size=4))
def test_a_column_constant_over_all_parties_becomes_zeros(value, sizes):
    one = Encoder(merged(*({"x": [value] * size} for size in sizes)))
    np.testing.assert_array_equal(one.transform(table({"x": [value]})), [[0]])


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e99])
def test_the_scale_of_a_column_makes_no_difference(scale):
    np.testing.assert_allclose(encoded({"x": [0, scale, 2 * scale]})[:, 0], [-1.2247449, 0, 1.2247449], rtol=1e-6)


def test_a_missing_number_becomes_the_mean_and_is_told():
    features = encoded({"x": [1, None, 3]})
    np.testing.assert_allclose(features, [[-1, 0], [0, 1], [1, 0]])


def test_a_column_without_values_becomes_zeros_and_is_told_missing():
    np.testing.assert_array_equal(encoded({"x": [None, None]}), [[0, 1], [0, 1]])


def test_only_columns_with_missing_values_get_an_indicator():
    names = encoder({"x": [1, 2], "y": [1, None], "z": ["a", None], "w": [True, None]}).names
    assert names == ("x", "y", "y is missing", "z=a", "z is missing", "w", "w is missing")


def test_a_value_missing_only_in_new_rows_becomes_zero():
    fitted = encoder({"x": [1, 3], "z": ["a", "b"], "w": [True, False]})
    new = table({"x": [None], "z": [None], "w": [None]}, {"z": "categorical", "w": "boolean"})
    np.testing.assert_array_equal(fitted.transform(new), np.zeros((1, 4)))


def test_rows_far_outside_the_fit_stay_finite():
    fitted = encoder({"x": [0, 1e-90]})
    assert np.isfinite(fitted.transform(table({"x": [1e99]}))).all()


def test_booleans_become_one_column():
    np.testing.assert_array_equal(encoded({"w": ["yes", "no", "YES"]}), [[1], [0], [1]])


def test_categories_become_one_hot_by_frequency_then_name():
    fitted = encoder({"z": ["b", "c", "a", "c"]})
    assert fitted.names == ("z=c", "z=a", "z=b")
    np.testing.assert_array_equal(fitted.transform(table({"z": ["a", "c"]})), [[0, 1, 0], [1, 0, 0]])


def test_ties_go_by_name_however_a_summary_lists_them():
    told = ToldKind(kind="categorical")
    summary = ColumnSummary(name="z", told=told, count=3, missing=0, categories={"c": 1, "a": 1, "b": 1})
    assert Encoder([summary], category_cap=2).names == ("z=a", "z=b", "z is another")


def test_rare_categories_share_a_column():
    features = encoded({"z": ["a", "a", "b", "c", "d"]}, category_cap=2)
    np.testing.assert_array_equal(features, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])


def test_the_shared_column_has_a_name():
    assert encoder({"z": ["a", "a", "b"]}, category_cap=1).names == ("z=a", "z is another")


def test_the_cap_is_64_unless_given():
    assert encoder({"z": [f"c{i}" for i in range(64)]}).width == 64
    assert encoder({"z": [f"c{i}" for i in range(80)]}).width == 65


def test_an_unseen_category_joins_the_shared_column():
    fitted = encoder({"z": ["a", "a", "b"]}, category_cap=1)
    np.testing.assert_array_equal(fitted.transform(table({"z": ["new"]})), [[0, 1]])


def test_an_unseen_category_is_zero_without_a_shared_column():
    np.testing.assert_array_equal(encoder({"z": ["a", "b"]}).transform(table({"z": ["new"]})), [[0, 0]])


def test_numbers_declared_categorical_are_categories():
    assert encoder({"x": [1, 2, 1]}, {"x": "categorical"}).names == ("x=1", "x=2")


def test_features_are_float32_in_the_order_of_the_columns():
    features = encoded({"z": ["a", "b"], "x": [1, 3]})
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, [[1, 0, -1], [0, 1, 1]])


def test_no_columns_make_no_features():
    assert Encoder([]).transform(table({"x": [1, 2]})).shape == (2, 0)


def test_a_text_in_a_column_declared_numeric_names_its_place():
    with pytest.raises(DataError, match="party bank, memory, column 'x', data row 2"):
        summarise(table({"x": ["1", "old"]}, {"x": "numeric"}), ["x"])


def test_a_column_declared_boolean_is_checked_before_it_is_summarised():
    with pytest.raises(DataError, match="column 'x', data row 2: a boolean column holds"):
        summarise(table({"x": ["1", "2"]}, {"x": "boolean"}), ["x"])


def test_an_unknown_column_is_refused():
    with pytest.raises(DataError, match="column 'y': has no such column"):
        summarise(table({"x": [1]}), ["y"])


def test_a_merge_of_pooled_counts_decides_the_kept_categories():
    summaries = merged({"z": ["a", "a", "b"]}, {"z": ["b", "b", "c"]})
    assert Encoder(summaries, category_cap=1).names[0] == "z=b"


def test_an_empty_column_follows_the_kind_of_the_others():
    assert merged({"z": [None]}, {"z": ["a"]}, {"z": [None]})[0].kind == "categorical"


def test_booleans_and_categories_merge_into_categories():
    summary = merged({"z": ["yes", "no"]}, {"z": ["yes", "maybe"]})[0]
    assert (summary.kind, summary.categories) == (
        "categorical",
        {"maybe": 1, "no": 1, "yes": 2},
    )


def test_numbers_and_texts_do_not_merge():
    with pytest.raises(DataError, match="column 'z' is numeric for p0, categorical for p1"):
        merged({"z": [1, 2]}, {"z": ["a", "b"]})


@settings(max_examples=80, deadline=None)
@given(splits())
def test_rows_that_are_shared_out_encode_as_pooled_to_the_last_bit(case):
    rows, ranges = case
    pooled = encoder(columns_of(rows), category_cap=3)
    spread = Encoder(merged(*(columns_of(rows[a:b]) for a, b in ranges)), category_cap=3)
    assert spread.names == pooled.names
    whole = table(columns_of(rows))
    np.testing.assert_array_equal(spread.transform(whole), pooled.transform(whole))


@settings(max_examples=40, deadline=None)
@given(splits())
def test_merged_summaries_are_exactly_those_of_the_pooled_rows(case):
    rows, ranges = case
    assert merged(*(columns_of(rows[a:b]) for a, b in ranges)) == merged(columns_of(rows))


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms())
def test_the_order_of_rows_changes_no_bit_of_an_encoder(rows, random):
    other = random.sample(rows, len(rows))
    whole = table(columns_of(rows))
    np.testing.assert_array_equal(
        encoder(columns_of(rows)).transform(whole), encoder(columns_of(other)).transform(whole)
    )


# -- dates --

CHRISTMAS_EVE, NEW_YEAR = dt.date(2024, 12, 24), dt.date(2025, 1, 1)


def test_a_date_becomes_a_number_and_points_on_circles():
    fitted = encoder({"d": [CHRISTMAS_EVE, NEW_YEAR]})
    assert fitted.names == ("d", "d month sin", "d month cos", "d weekday sin", "d weekday cos")
    [eve, year] = fitted.transform(table({"d": [CHRISTMAS_EVE, NEW_YEAR]}))
    december, tuesday, wednesday = 2 * np.pi * 11 / 12, 2 * np.pi / 7, 4 * np.pi / 7
    np.testing.assert_allclose(
        eve, [-1, np.sin(december), np.cos(december), np.sin(tuesday), np.cos(tuesday)], atol=1e-6
    )
    np.testing.assert_allclose(year, [1, 0, 1, np.sin(wednesday), np.cos(wednesday)], atol=1e-6)


def test_a_column_with_times_of_day_has_an_hour_too():
    moments = [dt.datetime(2024, 3, 1, 6, 0), dt.datetime(2024, 3, 2)]
    fitted = encoder({"d": moments})
    assert fitted.names[-2:] == ("d hour sin", "d hour cos")
    np.testing.assert_allclose(fitted.transform(table({"d": moments}))[:, -2:], [[1, 0], [0, 1]], atol=1e-6)


def test_a_missing_date_is_zeros_and_is_told():
    features = encoded({"d": [CHRISTMAS_EVE, None, NEW_YEAR]})
    np.testing.assert_array_equal(features[1], [0, 0, 0, 0, 0, 1])


def test_one_partys_times_give_the_whole_group_an_hour():
    fitted = Encoder(merged({"d": [CHRISTMAS_EVE]}, {"d": [dt.datetime(2025, 1, 1, 12)]}))
    assert "d hour sin" in fitted.names


# -- images --

IMAGES = np.arange(2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 3)


def test_pixels_become_shares_of_the_brightest_row_by_row():
    fitted = encoder({"i": IMAGES})
    assert fitted.names[:4] == ("i[0, 0]", "i[0, 1]", "i[0, 2]", "i[1, 0]")
    np.testing.assert_allclose(fitted.transform(table({"i": IMAGES})), IMAGES.reshape(2, 6) / 255, rtol=1e-6)


def test_pixels_of_other_types_are_scaled_by_their_own_largest_or_not_at_all():
    shares = np.full((1, 2, 2), 0.25, np.float32)
    np.testing.assert_array_equal(encoded({"i": shares}), [[0.25] * 4])
    np.testing.assert_allclose(encoded({"i": np.full((1, 2, 2), 65535, np.uint16)}), [[1.0] * 4])


def test_an_image_may_have_channels():
    assert encoder({"i": np.zeros((2, 4, 4, 3), np.uint8)}).width == 48


def test_images_of_another_size_than_the_fitted_ones_are_refused():
    fitted = encoder({"i": IMAGES})
    with pytest.raises(DataError, match=r"column 'i': expected images of \[2, 3\] uint8, found \[3, 2\] uint8"):
        fitted.transform(table({"i": IMAGES.reshape(2, 3, 2)}))


@pytest.mark.parametrize(
    "other", [IMAGES.reshape(2, 3, 2), IMAGES.astype(np.float32), [1, 2], [None, None], ["a", "b"]]
)
def test_a_groups_images_are_all_of_one_kind(other):
    with pytest.raises(DataError, match=r"column 'i' is image 2x3 of uint8 for p0"):
        merged({"i": IMAGES}, {"i": other})


def test_a_party_without_images_is_told_of_where_others_have_some():
    with pytest.raises(DataError, match=r"is image 2x3 of uint8 for p0: .* each party has some"):
        merged({"i": IMAGES}, {"i": [None, None]})


# -- the order of rows --


def test_rows_are_encoded_in_the_order_that_is_asked_for():
    columns = {
        "x": [1, 2, None],
        "z": ["a", "b", None],
        "w": [True, False, None],
        "d": [NEW_YEAR, None, CHRISTMAS_EVE],
        "i": np.arange(12, dtype=np.uint8).reshape(3, 2, 2),
    }
    order = np.array([2, 0], np.int32)
    fitted = encoder(columns)
    np.testing.assert_array_equal(fitted.transform(table(columns), order), fitted.transform(table(columns))[order])
