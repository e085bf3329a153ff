"""What the aggregator accepts of a round's replies."""

import math

import msgspec
import numpy as np
import pytest

from federation import ACTIVE, job_of
from vfedsec.config.job import Task
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.incoming import Incoming
from vfedsec.protocol.messages import Ready, Share, UpdateShare
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormats

BINARY, REGRESSION = Task(kind="binary"), Task(kind="regression")
MULTICLASS = Task(kind="multiclass", classes=("a", "b", "c"))
ROWS, WIDTH = 16, 4


def accepted(task, labels, *, valid=ROWS, labelled=True):
    """The words of an active party's share with these labels."""
    job = msgspec.structs.replace(job_of((1,), batch_size=ROWS, width=WIDTH), task=task)
    raw = None if labels is None else memoryview(np.array(labels, "<f4").tobytes())
    share = Share(3, {0: memoryview(bytes(4 * ROWS * WIDTH))}, labels=raw, valid=valid)
    return Incoming(job, Roles(job), ShareFormats(job)).shares(ACTIVE, share, 3, {0}, labelled=labelled)


def labels_with(label):
    return [0.0] * (ROWS - 1) + [label]


@pytest.mark.parametrize(("task", "label"), [(BINARY, 1), (MULTICLASS, 2), (REGRESSION, -1e30)])
def test_labels_of_the_task_are_taken(task, label):
    assert accepted(task, labels_with(label))[0].shape == (ROWS * WIDTH,)


@pytest.mark.parametrize(
    ("task", "label"),
    [
        *((task, label) for task in (BINARY, MULTICLASS) for label in (-1, 0.5, math.nan, math.inf)),
        (BINARY, 2),
        (MULTICLASS, 3),
        (MULTICLASS, -100),  # a loss of torch's would leave such rows out in silence
        (REGRESSION, math.nan),
        (REGRESSION, math.inf),
    ],
)
def test_labels_of_another_task_are_refused(task, label):
    with pytest.raises(RemoteProtocolError, match="expected labels that are classes of the task"):
        accepted(task, labels_with(label))


@pytest.mark.parametrize("count", [0, ROWS - 1, ROWS + 1])
def test_labels_for_another_number_of_rows_are_refused(count):
    with pytest.raises(RemoteProtocolError, match=f"expected {ROWS} labels"):
        accepted(BINARY, [0.0] * count)


@pytest.mark.parametrize("valid", [-1, 0, ROWS + 1])
def test_a_batch_without_rows_or_with_too_many_is_refused(valid):
    with pytest.raises(RemoteProtocolError, match="expected a batch with rows"):
        accepted(BINARY, labels_with(1), valid=valid)


def test_labels_come_where_they_are_asked_for_and_nowhere_else():
    assert accepted(BINARY, None, labelled=False)
    with pytest.raises(RemoteProtocolError, match="expected a batch with rows and labels"):
        accepted(BINARY, None)
    with pytest.raises(RemoteProtocolError, match=r"expected a batch with rows$"):
        accepted(BINARY, labels_with(1), labelled=False)


def class_rows(task, rows):
    """What is taken of an active party's word about its classes."""
    job = msgspec.structs.replace(job_of((1,)), task=task)
    return Incoming(job, Roles(job), ShareFormats(job)).class_rows(Ready(3, class_rows=rows))


def balancing(task):
    return msgspec.structs.replace(task, class_weights="balanced")


@pytest.mark.parametrize(("task", "rows"), [(BINARY, [0, 7]), (MULTICLASS, [3, 0, 2**31 - 1])])
def test_the_rows_of_classes_are_taken_where_the_job_balances_them(task, rows):
    assert class_rows(balancing(task), rows) == rows
    assert class_rows(task, []) == []


@pytest.mark.parametrize(
    ("task", "rows"),
    [
        (balancing(BINARY), []),
        (balancing(BINARY), [5]),
        (balancing(BINARY), [0, 0]),
        (balancing(MULTICLASS), [1, 1]),
        (balancing(MULTICLASS), [1] * 4),
        (BINARY, [3, 4]),
        (msgspec.structs.replace(BINARY, class_weights=(1.0, 2.0)), [3, 4]),
        (REGRESSION, [3]),
    ],
)
def test_rows_of_other_classes_or_of_none_are_refused(task, rows):
    with pytest.raises(RemoteProtocolError, match=r"expected training rows of \d classes"):
        class_rows(task, rows)


@pytest.mark.parametrize(("rounds", "is_one"), [((3, 3), True), ((3, 2), False), ((2, 2), False)])
def test_only_updates_of_the_round_make_a_sum(rounds, is_one):
    job = job_of((2, 1))
    replies = {f"a{index}": UpdateShare(number, memoryview(bytes(8))) for index, number in enumerate(rounds)}
    total = Incoming(job, Roles(job), ShareFormats(job)).sum_of(["a0", "a1"], replies, 3)
    assert (total is not None) == is_one
