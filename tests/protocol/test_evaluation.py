"""Passes over held-out rows."""

from federation import ACTIVE, Federation, job_of, trained
from vfedsec import trace

HELD_OUT, BATCH = 40, 16


def test_a_pass_that_lost_a_batch_ends_with_the_rows_that_came():
    federation = Federation(job_of(rounds=3, batch_size=BATCH))
    federation.start()
    federation.step_to("test")
    federation.script.lose(ACTIVE)
    while federation.step():
        pass
    assert [(event.kind, event.rows) for event in federation.of_type(trace.Evaluated)] == [("test", HELD_OUT - BATCH)]


def test_padding_of_the_last_batch_counts_in_no_metric():
    federation = trained(job_of(rounds=3, batch_size=BATCH))
    assert [event.rows for event in federation.of_type(trace.Evaluated)] == [HELD_OUT]
