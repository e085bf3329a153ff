"""Random dropouts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.config.job import Simulation
from vfedsec.engines.faults import Fault, Faults, RandomDropouts
from vfedsec.protocol.switchboard import Exchange

PARTIES = [f"p{index}" for index in range(10)]


def exchange_of(round_index, kind="train", training=True, present=PARTIES):
    return Exchange(1, kind, {}, frozenset(present), round_index, training)


def dropouts(probability=0.5, proportion=0.1, seed=0, points=RandomDropouts.POINTS):
    return RandomDropouts(Simulation(drop_probability=probability, drop_proportion=proportion), PARTIES, seed, points)


def struck(faults, exchange):
    found = {party: faults.strike(exchange, party) for party in ["active", *PARTIES]}
    return {party: fault for party, fault in found.items() if fault is not Fault.NONE}


def test_the_hooks_do_nothing_by_default():
    assert Faults().strike(exchange_of(1), "p0") is Fault.NONE
    assert Faults().request(exchange_of(1), "p0", b"data") == [b"data"]
    assert Faults().reply(exchange_of(1), "p0", b"data") == b"data"


@pytest.mark.parametrize("probability", [0.0, 0.3, 0.6, 1.0])
def test_so_many_rounds_lose_parties(probability):
    faults = dropouts(probability, points=["before"])
    rounds = sum(bool(struck(faults, exchange_of(number))) for number in range(2000))
    assert abs(rounds / 2000 - probability) < 0.05


@pytest.mark.parametrize(("proportion", "count"), [(0.0, 1), (0.05, 1), (0.1, 1), (0.19, 1), (0.35, 3), (1.0, 10)])
def test_such_a_round_loses_that_share_of_the_parties_and_at_least_one(proportion, count):
    faults = dropouts(1.0, proportion, points=["before", "middle"])
    assert {len(struck(faults, exchange_of(number))) for number in range(100)} == {count}


def test_only_who_takes_part_is_struck():
    """A party that is away already cannot be lost again: rounds would seem to lose fewer than the job says."""
    faults = dropouts(1.0, proportion=0.3, points=["before"])
    seen = [set(struck(faults, exchange_of(number, present=["active", "p1", "p2"]))) for number in range(20)]
    assert all(names == {"p1", "p2"} for names in seen)
    assert not struck(faults, exchange_of(20, present=["active"]))


def test_parties_are_lost_before_in_the_middle_and_after():
    faults = dropouts(1.0)
    seen = Counter(fault for number in range(600) for fault in struck(faults, exchange_of(number)).values())
    assert seen[Fault.BEFORE] > 300  # before its part, and after it: then it misses the next exchange
    assert seen[Fault.MIDDLE] > 120


def test_a_party_lost_after_its_reply_misses_the_next_exchange():
    faults = dropouts(1.0, points=["after"])
    assert struck(faults, exchange_of(1)) == {}
    lost = struck(faults, exchange_of(1, kind="update"))
    assert set(lost.values()) == {Fault.BEFORE}
    assert struck(faults, exchange_of(1, kind="update")) == {}


@pytest.mark.parametrize("kind", ["hello", "mail", "plan", "validation", "test", "predict", "finish"])
def test_only_training_is_struck(kind):
    faults = dropouts(1.0, 1.0)
    assert struck(faults, exchange_of(1)) != {}
    assert all(struck(faults, exchange_of(number, kind, training=False)) == {} for number in range(9))


def test_every_party_is_lost_equally_often_and_the_active_one_never():
    faults = dropouts(1.0, points=["before"])
    seen = Counter(party for number in range(3000) for party in struck(faults, exchange_of(number)))
    assert set(seen) == set(PARTIES)
    assert max(seen.values()) < 1.3 * min(seen.values())


@given(st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_the_same_seed_loses_the_same_parties(seed, probability, proportion):
    runs = []
    for _ in range(2):
        faults = dropouts(probability, proportion, seed)
        runs.append([struck(faults, exchange_of(number)) for number in range(20)])
    assert runs[0] == runs[1]


def test_another_seed_loses_others():
    runs = [[struck(dropouts(1.0, seed=seed), exchange_of(number)) for number in range(20)] for seed in (0, 1)]
    assert runs[0] != runs[1]
