"""Joining shares into an embedding, and collecting a pass."""

import numpy as np
import pytest

from federation import ACTIVE, job_of
from vfedsec.protocol.evaluation import Pass
from vfedsec.protocol.fusion import Fusion
from vfedsec.protocol.messages import Batch
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormats

JOB = job_of((2, 1), mode="insecure-plain")
ROLES = Roles(JOB)


def shares(**values):
    """One number everywhere in each slice of each party."""
    return {
        party: {index: np.full(16 * 4, value, np.float32) for index, value in slices.items()}
        for party, slices in values.items()
    }


def joined(given, sets):
    return Fusion(ROLES, ShareFormats(JOB).embedding).join(given, sets)


FULL = {0: frozenset({ACTIVE, "a0", "a1"}), 1: frozenset({ACTIVE, "b0"})}
EVERYTHING = {"active": {0: 1.0, 1: 2.0}, "a0": {0: 10.0}, "a1": {0: 20.0}, "b0": {1: 40.0}}


def test_each_slice_is_the_sum_of_its_masking_set():
    embedding, present = joined(shares(**EVERYTHING), FULL)
    assert present == (True, True)
    assert (embedding[:, :4] == 31).all()
    assert (embedding[:, 4:] == 42).all()


@pytest.mark.parametrize(
    ("missing", "expected"), [("a0", (False, True)), ("b0", (True, False)), (ACTIVE, (False, False))]
)
def test_a_slice_whose_masking_set_is_incomplete_is_zeros_and_absent(missing, expected):
    embedding, present = joined(shares(**{p: s for p, s in EVERYTHING.items() if p != missing}), FULL)
    assert present == expected
    for index, there in enumerate(expected):
        assert embedding[:, 4 * index : 4 * index + 4].any() == there


def test_a_party_that_is_not_in_the_masking_set_is_not_added():
    embedding, present = joined(shares(**EVERYTHING), {0: frozenset({ACTIVE, "a1"})})
    assert present == (True, False)
    assert (embedding[:, :4] == 21).all()


def test_the_active_party_alone_makes_no_slice():
    _, present = joined(shares(**EVERYTHING), {0: frozenset({ACTIVE}), 1: frozenset()})
    assert present == (False, False)


def test_a_pass_is_complete_when_every_batch_is_in_and_orders_them_itself():
    current = Pass("regression", 2)
    one, two = np.float32([1, 2]), np.float32([3])
    current.add(Batch("test", 0, 1), two, two[:, None] + 1)
    assert not current.is_complete
    current.add(Batch("test", 0, 0), one, one[:, None])
    current.add(Batch("test", 0, 0), one, one[:, None])
    assert current.is_complete
    reference = Pass("regression", 1)
    reference.add(Batch("test", 0, 0), np.float32([1, 2, 3]), np.float32([[1], [2], [4]]))
    assert current.metrics() == reference.metrics()
