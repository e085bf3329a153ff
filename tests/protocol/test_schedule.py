"""In which order mini-batches come."""

from itertools import islice

import msgspec
import pytest

from federation import job_of
from vfedsec.config.job import Split, Training
from vfedsec.protocol.messages import Batch, Ready
from vfedsec.protocol.schedule import Schedule, one_pass, rounds_planned, training_schedule

SIZES = Ready(train_batches=3, validation_batches=2, test_batches=2, predict_batches=4)


def planned(*, validation=0.1, **training):
    job = msgspec.structs.replace(job_of(), training=Training(**training), split=Split(validation=validation))
    return list(training_schedule(job, SIZES))


def short(batches):
    return " ".join(f"{batch.kind[0]}{batch.epoch}.{batch.index}" for batch in batches)


def test_epochs_follow_each_other_with_a_pass_between_and_the_test_rows_last():
    assert short(planned(epochs=2)) == "t0.0 t0.1 t0.2 v0.0 v0.1 t1.0 t1.1 t1.2 v1.0 v1.1 t0.0 t0.1"
    assert [batch.kind for batch in planned(epochs=2)][-2:] == ["test", "test"]


def test_rows_that_serve_as_both_are_not_gone_through_twice_at_the_end():
    batches = planned(validation=0, epochs=2)
    assert short(batches) == "t0.0 t0.1 t0.2 v0.0 v0.1 t1.0 t1.1 t1.2 t0.0 t0.1"
    assert [batch.kind for batch in batches][-3:] == ["train", "test", "test"]


def test_rounds_take_the_place_of_epochs():
    trained = [batch for batch in planned(rounds=5) if batch.kind == "train"]
    assert short(trained) == "t0.0 t0.1 t0.2 t1.0 t1.1"
    assert rounds_planned(Training(rounds=5), SIZES) == 5
    assert rounds_planned(Training(epochs=4), SIZES) == 12


@pytest.mark.parametrize(("every", "passes"), [(0, 1), (1, 6), (2, 3), (4, 2), (6, 1), (100, 1)])
def test_evaluations_come_every_so_many_rounds_and_at_the_end(every, passes):
    batches = planned(rounds=6, evaluate_every=every)
    assert sum(batch.kind == "validation" for batch in batches) == 2 * passes
    assert len({batch.epoch for batch in batches if batch.kind == "validation"}) == passes


def test_a_pass_has_every_batch_once():
    assert short(one_pass("predict", 7, 4)) == "p7.0 p7.1 p7.2 p7.3"


def test_every_batch_comes_once_and_as_it_was_announced():
    schedule, used = Schedule(one_pass("train", 0, 5)), []
    while schedule.current is not None:
        used.append(schedule.current.index)
        announced = schedule.following
        schedule.advance()
        assert schedule.current == announced
    assert used == [0, 1, 2, 3, 4]


def test_the_schedule_looks_one_batch_ahead_and_no_further():
    taken = []
    batches = (taken.append(batch) or batch for batch in one_pass("train", 0, 100))
    schedule = Schedule(batches)
    assert len(taken) == 2
    schedule.advance()
    assert len(taken) == 3
    assert list(islice(batches, 1)) == [Batch("train", 0, 3)]
