"""Thousands of rounds that lose parties at random points end without an error, a hang, a wrong number or a leak."""

import gc
import os
import tracemalloc

import numpy as np
import pytest

from federation import Federation, job_of
from vfedsec import trace
from vfedsec.engines.faults import Fault

ROUNDS = 300 if os.environ.get("FAST") else 2000
WARM_UP = 100
PASS = 60  # most exchanges a round may take on average, with all the waiting for parties; more would be a hang
KEPT_BYTES = 40_000
PEAK_BYTES = 500_000  # between two collections of garbage


class Lean(Federation):
    """Keeps counts of what happens and no more, so that what grows is the federation itself."""

    def __init__(self, job, **options):
        super().__init__(job, keep=False, **options)
        self.outcomes_seen = {"trained": 0, "padded": 0, "dropped": 0, "evaluated": 0}
        self.lost, self.worst_loss = 0, 0.0
        aggregator = self.simulation.aggregator
        aggregator._tell = self.hear

    def hear(self, event):
        if isinstance(event, trace.RoundEnded):
            self.outcomes_seen[event.outcome] += 1
            assert event.loss is None or np.isfinite(event.loss)
        self.lost += isinstance(event, trace.PartyLost)

    def go(self, rounds):
        """So many training rounds more; whether the run has not ended yet."""
        tally = self.simulation.aggregator.tally
        target, budget = tally.rounds + rounds, PASS * rounds
        while tally.rounds < target:
            budget -= 1
            assert budget, "the run goes on without rounds going by"
            if not self.step():
                return False
        return True


def forget(oracle):
    """The oracle remembers every update; in a long run only the last ones can still be applied."""
    while oracle and len(oracle.updates) > WARM_UP:
        del oracle.updates[next(iter(oracle.updates))]


RUNS = [
    ((2, 1), "concat", "pad", 0.3),
    ((2, 1), "concat", "pad", 0.6),
    ((2, 1), "concat", "discard", 0.3),
    ((2, 1), "concat", "discard", 0.6),
    ((3, 1, 1), "concat", "pad", 0.6),
    ((2, 1), "sum", "pad", 0.3),
]


@pytest.mark.parametrize(("groups", "fusion", "policy", "drop"), RUNS, ids=str)
def test_a_long_run_that_loses_parties_ends_with_every_sum_right(groups, fusion, policy, drop):
    job = job_of(groups, fusion=fusion, policy=policy, drop=drop, rounds=ROUNDS, rekey_every=7, batch_size=8, width=2)
    federation = Lean(job)
    federation.start()
    while federation.go(WARM_UP):
        forget(federation.oracle)
    federation.simulation.finish()

    tally, seen = federation.simulation.aggregator.tally, federation.outcomes_seen
    assert tally.rounds >= ROUNDS
    assert seen["trained"] == tally.trained > ROUNDS * 0.2
    assert seen["padded"] == tally.padded
    assert federation.lost > ROUNDS * drop * 0.7
    assert (tally.padded == 0) == (policy == "discard")
    assert federation.oracle.joined > tally.trained
    assert federation.oracle.applied > tally.trained * 0.5
    for party in federation.parties.values():
        assert np.isfinite(party.model.forward(np.arange(4, dtype=np.int32), training=False)).all()


@pytest.mark.parametrize("policy", ["pad", "discard"])
def test_a_long_run_keeps_no_more_memory_than_a_short_one(policy):
    """Besides what each round leaves for the next, nothing is kept: no keys, no pairs, no replies, no names of keys."""
    job = job_of((2, 1), policy=policy, drop=0.4, rounds=10**6, rekey_every=2, batch_size=8, width=2)
    federation = Lean(job, watched=False)
    federation.start()
    federation.go(WARM_UP)
    tracemalloc.start()
    try:
        federation.go(WARM_UP)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        federation.go(WARM_UP)
        usual_peak = tracemalloc.get_traced_memory()[1]
        federation.go(ROUNDS // 4)
        gc.collect()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < KEPT_BYTES
    assert peak - usual_peak < PEAK_BYTES


def test_a_party_that_stays_away_for_long_costs_no_memory_either():
    federation = Lean(job_of((2, 1), rounds=10**6, rekey_every=2, batch_size=8, width=2), watched=False)
    federation.start()
    federation.script.strike = lambda exchange, party: Fault.BEFORE if party in ("a1", "b0") else Fault.NONE
    federation.go(WARM_UP)
    tracemalloc.start()
    try:
        federation.go(WARM_UP)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        federation.go(ROUNDS // 4)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < KEPT_BYTES
