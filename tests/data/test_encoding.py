"""Encodings: one column, and the same whether rows are pooled or spread over parties."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.data.encoding import ColumnSummary, Encoder, merge, summarise
from vfedsec.data.table import Table
from vfedsec.errors import DataError


def table(columns, kinds=None, party="bank"):
    rows = len(next(iter(columns.values())))
    return Table.from_columns(party, [str(r) for r in range(rows)], columns, kinds=kinds)


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
    summary = ColumnSummary(name="z", kind="categorical", count=3, missing=0, categories={"c": 1, "a": 1, "b": 1})
    assert Encoder([summary], category_cap=2).names == ("z=a", "z=b", "z is another")


def test_a_summary_does_not_tell_the_order_of_rows():
    [summary] = summarise(table({"z": ["c", "a", "b", "a"]}), ["z"])
    assert list(summary.categories) == ["a", "b", "c"]


def test_rare_categories_share_a_column():
    features = encoded({"z": ["a", "a", "b", "c", "d"]}, category_cap=2)
    np.testing.assert_array_equal(features, [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])


def test_the_shared_column_has_a_name():
    assert encoder({"z": ["a", "a", "b"]}, category_cap=1).names == ("z=a", "z is another")


def test_the_cap_is_32_unless_given():
    assert encoder({"z": [f"c{i}" for i in range(32)]}).width == 32
    assert encoder({"z": [f"c{i}" for i in range(40)]}).width == 33


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


@pytest.mark.parametrize(
    "change",
    [
        {"mean": float("nan")},
        {"mean": 1e300},
        {"deviation": float("inf")},
        {"deviation": -1.0},
        {"count": -1},
        {"missing": 2**50},
        {"categories": {"a": 3}},
        {"kind": "categorical"},
        {"kind": "categorical", "categories": {"a": 5, "b": -2}},
        {"kind": "image"},
        {"extra": 1},
    ],
)
def test_an_impossible_summary_is_not_read(change):
    honest = {"name": "x", "kind": "numeric", "count": 3, "missing": 0, "categories": {}}
    msgspec.convert(honest, ColumnSummary)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(honest | change, ColumnSummary)


CELLS = {
    "number": st.one_of(st.none(), st.integers(-3, 3), st.floats(-1e6, 1e6)),
    "far": st.one_of(st.none(), st.floats(1e8, 1e8 + 10)),
    "town": st.one_of(st.none(), st.sampled_from(["Ulm", "Köln", "Bonn", "", "Trier"])),
    "member": st.one_of(st.none(), st.booleans()),
    "answer": st.one_of(st.none(), st.sampled_from(["yes", "no", "perhaps"])),
}
ROWS = st.lists(st.tuples(*CELLS.values()), min_size=5, max_size=30)


@st.composite
def splits(draw):
    """Rows, and the places where they are cut into two to five parties."""
    rows = draw(ROWS)
    inner = st.integers(1, len(rows) - 1)
    cuts = sorted(draw(st.lists(inner, min_size=1, max_size=4, unique=True)))
    return rows, list(zip([0, *cuts], [*cuts, len(rows)], strict=True))


def columns_of(rows):
    return dict(zip(CELLS, map(list, zip(*rows, strict=True)), strict=True))


@settings(max_examples=80, deadline=None)
@given(splits())
def test_merged_summaries_encode_as_those_of_the_pooled_rows(case):
    rows, ranges = case
    pooled = encoder(columns_of(rows), category_cap=3)
    spread = Encoder(merged(*(columns_of(rows[a:b]) for a, b in ranges)), category_cap=3)
    assert spread.names == pooled.names
    whole = table(columns_of(rows))
    np.testing.assert_allclose(spread.transform(whole), pooled.transform(whole), atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(splits())
def test_merged_counts_are_exactly_those_of_the_pooled_rows(case):
    rows, ranges = case
    pooled = merged(columns_of(rows))
    spread = merged(*(columns_of(rows[a:b]) for a, b in ranges))
    for one, other in zip(spread, pooled, strict=True):
        assert msgspec.structs.replace(one, mean=0, deviation=0) == msgspec.structs.replace(other, mean=0, deviation=0)


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_summaries_survive_the_wire(rows):
    summaries = merged(columns_of(rows))
    body = msgspec.msgpack.encode(summaries)
    assert msgspec.msgpack.decode(body, type=list[ColumnSummary]) == summaries
