"""Orders drawn from seeds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.data.ordering import derived_seed, keyed_order, shuffled

ID_SETS = st.lists(st.text(max_size=4), unique=True, max_size=30)


@settings(max_examples=50)
@given(ID_SETS, st.binary(max_size=64), st.randoms(use_true_random=False))
def test_keyed_order_of_ids_does_not_depend_on_their_order(ids, seed, random):
    mixed = random.sample(ids, len(ids))
    assert [ids[r] for r in keyed_order(ids, seed)] == [mixed[r] for r in keyed_order(mixed, seed)]


@settings(max_examples=50)
@given(st.integers(0, 200), st.binary(max_size=80))
def test_a_shuffle_keeps_every_row(count, seed):
    rows = np.arange(count, dtype=np.int32)
    np.testing.assert_array_equal(np.sort(shuffled(rows, seed)), rows)


def test_a_shuffle_follows_from_its_seed():
    rows = np.arange(100, dtype=np.int32)
    np.testing.assert_array_equal(shuffled(rows, b"a"), shuffled(rows, b"a"))


def test_orders_differ_between_seeds():
    ids = [str(i) for i in range(100)]
    rows = np.arange(100, dtype=np.int32)
    assert keyed_order(ids, b"a").tolist() != keyed_order(ids, b"b").tolist()
    assert shuffled(rows, b"a").tolist() != shuffled(rows, b"b").tolist()


def test_rows_stay_32_bits_wide():
    rows = np.arange(3, dtype=np.int32)
    assert keyed_order(["a"], b"").dtype == shuffled(rows, b"").dtype == np.int32


def test_seeds_for_two_purposes_differ():
    assert derived_seed(b"seed", "one") != derived_seed(b"seed", "two")
