"""Held-out rows and batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.config.job import Split
from vfedsec.data.batches import TableBatches
from vfedsec.errors import DataError, LocalProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW

SEED = b"seed"
KINDS = ("train", "validation", "test", "predict")


def split(labels, *, ids=None, batch_size=4, seed=SEED, test=0.2, validation=0.0, stratified=True):
    labels = np.array(labels, dtype=np.float32)
    ids = [f"id{i}" for i in range(len(labels))] if ids is None else ids
    partners = {"bank": np.arange(len(labels), dtype=np.int32)[::-1].copy()}
    return TableBatches.from_split(
        batch_size,
        Split(test=test, validation=validation),
        ids,
        partners,
        labels=labels,
        seed=seed,
        stratified=stratified,
    )


def all_rows(batches, kind, epoch=0):
    chosen = [batches.rows(kind, epoch, i) for i in range(batches.count(kind))]
    rows = np.concatenate([*chosen, np.empty(0, np.int32)])
    return rows[rows != ABSENT_ROW].tolist()


def people(batches, kind):
    return set(batches.ids_of(np.array(all_rows(batches, kind), dtype=np.int32)))


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=60),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([0.0, 0.2]),
)
def test_every_row_is_of_exactly_one_kind(labels, test, validation):
    batches = split(labels, test=test, validation=validation, batch_size=1)
    kinds = ["train", "test"] + (["validation"] if validation else [])
    rows = [row for kind in kinds for row in all_rows(batches, kind)]
    assert sorted(rows) == list(range(len(labels)))


def test_held_out_fractions_are_those_of_the_job():
    batches = split([0] * 100, test=0.2, validation=0.1)
    assert (len(all_rows(batches, "test")), len(all_rows(batches, "validation"))) == (20, 10)


@settings(max_examples=40)
@given(st.lists(st.integers(2, 20), min_size=3, max_size=3))
def test_held_out_rows_hold_each_class_in_its_proportion(sizes):
    labels = [label for label, size in enumerate(sizes) for _ in range(size * 5)]
    rows = all_rows(split(labels, test=0.2), "test")
    counts = np.bincount([labels[row] for row in rows], minlength=3)
    assert np.abs(counts - np.array(sizes)).max() <= 1


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.booleans())
def test_the_same_people_are_held_out_in_any_row_order(random, stratified):
    label_of = {f"id{i}": i % 3 for i in range(30)}
    mixed = random.sample(sorted(label_of), len(label_of))
    one, other = (
        split([label_of[i] for i in ids], ids=ids, validation=0.1, stratified=stratified)
        for ids in (list(label_of), mixed)
    )
    assert people(one, "test") == people(other, "test")
    assert people(one, "validation") == people(other, "validation")


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=8, max_size=40), st.randoms(use_true_random=False), st.integers(0, 3))
def test_the_same_people_stand_in_the_same_batch_in_any_row_order(labels, random, epoch):
    label_of = {f"id{i}": label for i, label in enumerate(labels)}
    mixed = random.sample(sorted(label_of), len(label_of))
    one, other = (split([label_of[i] for i in ids], ids=ids, validation=0.2) for ids in (list(label_of), mixed))
    for kind in ("train", "validation", "test"):
        assert one.count(kind) == other.count(kind)
        for index in range(one.count(kind)):
            here, there = (batches.rows(kind, epoch, index) for batches in (one, other))
            assert one.ids_of(here) == other.ids_of(there)
            np.testing.assert_array_equal(one.labels(here), other.labels(there))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2), min_size=4, max_size=60), st.sampled_from([0.0, 0.3]))
def test_training_rows_of_a_class_are_counted_whether_an_epoch_takes_them_or_not(labels, validation):
    counts = split(labels, validation=validation, batch_size=4).class_rows(4)
    rows = all_rows(split(labels, validation=validation, batch_size=1), "train")
    assert counts == np.bincount([labels[row] for row in rows], minlength=4).tolist()


def test_another_seed_holds_out_others():
    assert people(split([0] * 50), "test") != people(split([0] * 50, seed=b"other"), "test")


def test_a_fraction_is_rounded_to_the_nearest_row():
    assert len(all_rows(split([0] * 100, test=0.29), "test")) == 29


def test_without_validation_rows_the_test_rows_stand_in():
    batches = split([0] * 20)
    assert people(batches, "validation") == people(batches, "test") != set()


def test_regression_targets_are_one_stratum():
    assert len(all_rows(split(np.linspace(0, 1, 50), stratified=False), "test")) == 10


def test_a_split_without_training_rows_is_refused():
    with pytest.raises(DataError, match="holding out 10 rows leaves none of 10"):
        split([0] * 10, test=0.5, validation=0.5)


def test_predictions_take_all_rows_once():
    assert sorted(all_rows(split([0, 1] * 5), "predict")) == list(range(10))


@pytest.mark.parametrize("kind", ["train", "validation", "test", "predict"])
def test_rows_of_every_kind_come_in_another_order_every_time(kind):
    batches = split([0] * 200, test=0.4, validation=0.3)
    one, other = (all_rows(batches, kind, epoch=epoch) for epoch in (0, 1))
    assert sorted(one) == sorted(other)
    assert one != other


def test_training_batches_are_full():
    batches = split([0] * 10, test=0)
    assert batches.count("train") == 2
    assert ABSENT_ROW not in np.concatenate([batches.rows("train", 0, i) for i in range(2)])


def test_fewer_rows_than_a_batch_make_one_padded_training_batch():
    batches = split([0] * 3, test=0)
    rows = batches.rows("train", 0, 0)
    assert (batches.count("train"), sorted(rows.tolist())) == (1, [ABSENT_ROW, 0, 1, 2])


def test_other_batches_cover_all_rows_and_pad_the_last():
    batches = split([0] * 6)
    rows = [batches.rows("predict", 0, i).tolist() for i in range(batches.count("predict"))]
    assert sorted(rows[0] + rows[1][:2]) == [0, 1, 2, 3, 4, 5]
    assert rows[1][2:] == [ABSENT_ROW, ABSENT_ROW]


def test_training_rows_of_an_epoch_do_not_repeat():
    rows = all_rows(split([0] * 40, test=0), "train", epoch=3)
    assert sorted(rows) == list(range(40))


def test_epochs_are_ordered_differently():
    batches = split([0] * 40, test=0)
    assert all_rows(batches, "train", 0) != all_rows(batches, "train", 1)


def test_another_seed_orders_the_same_rows_otherwise():
    one, two = (split([0] * 100, seed=seed) for seed in (b"one", b"two"))
    assert all_rows(one, "predict") != all_rows(two, "predict")


def test_rows_that_stand_in_for_others_come_in_another_order():
    batches = split([0] * 200, test=0.4)
    assert all_rows(batches, "validation") != all_rows(batches, "test")


def test_a_batch_is_the_same_whatever_was_asked_before():
    asked, fresh = split([0] * 40), split([0] * 40)
    for epoch in (0, 5, 2):
        asked.rows("train", epoch, 1)
    np.testing.assert_array_equal(asked.rows("train", 5, 3), fresh.rows("train", 5, 3))


@pytest.mark.parametrize("index", [-1, 2])
def test_a_batch_beyond_the_last_is_refused(index):
    with pytest.raises(LocalProtocolError, match=rf"batch {index} of the predict rows .* are 2"):
        split([0] * 8).rows("predict", 0, index)


def test_labels_follow_the_rows_with_zeros_where_absent():
    batches = split([5, 6, 7, 8])
    labels = batches.labels(np.array([2, ABSENT_ROW, 0], dtype=np.int32))
    assert labels.dtype == np.float32
    np.testing.assert_array_equal(labels, [7, 0, 5])


def test_partner_rows_follow_the_rows_and_stay_absent():
    rows = split([0] * 4).partner_rows("bank", np.array([0, ABSENT_ROW, 3], dtype=np.int32))
    assert rows.dtype == np.int32
    np.testing.assert_array_equal(rows, [3, ABSENT_ROW, 0])


def test_batches_are_32_bit_rows_of_one_size():
    batches = split([0] * 11)
    shapes = {(batches.rows(k, 0, 0).shape, batches.rows(k, 0, 0).dtype.name) for k in KINDS}
    assert shapes == {((4,), "int32")}


def test_ids_of_a_batch_leave_out_padding():
    assert split([0] * 3).ids_of(np.array([2, ABSENT_ROW, 0], dtype=np.int32)) == ["id2", "id0"]


def test_prediction_batches_have_no_other_kind_and_zero_labels():
    batches = TableBatches.for_prediction(2, ["a", "b", "c"], {}, seed=b"s")
    assert [batches.count(kind) for kind in KINDS] == [0, 0, 0, 2]
    assert batches.class_rows(2) == [0, 0]
    np.testing.assert_array_equal(batches.labels(batches.rows("predict", 0, 0)), [0, 0])


def test_aligned_arrays_make_batches_directly():
    rows = np.array([1, 0], dtype=np.int32)
    batches = TableBatches(2, {"train": rows}, {"bank": rows}, labels=np.float32([3, 4]), seed=SEED)
    batch = batches.rows("train", 0, 0)
    np.testing.assert_array_equal(batches.labels(batch), 3 + batch)
