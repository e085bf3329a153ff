"""What a run costs."""

from collections import Counter

import pytest

from federation import ACTIVE, Federation, job_of, trained
from vfedsec.config.job import AGGREGATOR
from vfedsec.engines.metering import PHASES, Cost, Meter


@pytest.fixture(scope="module")
def run():
    federation = Federation(job_of((2, 1), rounds=8, drop=0.4, rekey_every=3))
    federation.simulation.train()
    federation.simulation.finish()
    return federation


def test_metered_bytes_are_those_a_tap_sees():
    federation = Federation(job_of((2, 1), rounds=6))
    federation.simulation.train()
    federation.simulation.predict()
    federation.simulation.finish()
    meter = federation.simulation.engine.meter
    for name in federation.parties:
        heard = [one for one in federation.heard if one.party == name]
        assert meter.total(name).bytes_received == sum(len(one.request) for one in heard)
        assert meter.total(name).bytes_sent == sum(len(one.reply) for one in heard)
        assert meter.total(name).exchanges == len(heard)
    assert meter.bytes_moved() == sum(len(one.request) + len(one.reply) for one in federation.heard)


def test_metered_bytes_are_counted_by_kind():
    federation = Federation(job_of((2, 1), rounds=6))
    federation.simulation.train()
    meter, counted = federation.simulation.engine.meter, Counter()
    for one in federation.heard:
        counted[one.party, one.exchange.kind] += len(one.reply)
    assert {(party, kind) for party in federation.parties for kind in meter.costs[party]} == set(counted)
    for (party, kind), size in counted.items():
        assert meter.of_kind(party, kind).bytes_sent == size


def test_sixteen_bit_words_halve_the_upload():
    sizes = {}
    for word_bits in (16, 32):
        federation = Federation(job_of((1, 1), rounds=10, batch_size=64, width=32, word_bits=word_bits), keep=False)
        federation.simulation.train()
        sizes[word_bits] = federation.simulation.engine.meter.of_kind("a0", "train").bytes_sent
    assert 0.49 < sizes[16] / sizes[32] < 0.53


def test_the_upload_of_a_round_is_the_embedding_and_little_more():
    federation = Federation(job_of((1, 1), rounds=10, batch_size=64, width=32), keep=False)
    federation.simulation.train()
    cost = federation.simulation.engine.meter.of_kind("a0", "train")
    assert cost.exchanges == 10
    assert 10 * 64 * 32 * 4 < cost.bytes_sent < 10 * (64 * 32 * 4 + 150)


def test_lost_work_is_metered_too(run):
    """What was sent and never opened was sent all the same."""
    meter = run.simulation.engine.meter
    late = [one for one in run.heard if one.reply is None]
    answered = sum(len(one.reply) for one in run.heard if one.reply is not None)
    assert late
    assert sum(meter.total(name).bytes_sent for name in run.parties) > answered


def test_phases_cover_every_kind_of_exchange(run):
    kinds = {one.exchange.kind for one in run.heard}
    assert kinds <= set(PHASES)
    meter = run.simulation.engine.meter
    for name in (*run.parties, AGGREGATOR):
        phases = [meter.of_phase(name, phase) for phase in set(PHASES.values())]
        assert sum(cost.exchanges for cost in phases) == meter.total(name).exchanges
        assert sum(cost.cpu_seconds for cost in phases) == pytest.approx(meter.total(name).cpu_seconds)


def test_security_is_a_part_of_the_time(run):
    meter = run.simulation.engine.meter
    for name in run.parties:
        cost = meter.total(name)
        assert 0 < cost.security_seconds <= cost.cpu_seconds
        assert 0 < cost.security_share <= 1


def test_the_aggregator_is_metered_in_time_and_not_in_bytes(run):
    cost = run.simulation.engine.meter.total(AGGREGATOR)
    assert cost.cpu_seconds > 0
    assert cost.bytes_sent == cost.bytes_received == 0


def test_costs_add_up():
    total = Cost(1, 2, 3, 4.0, 1.0, 6, 0)
    total += Cost(10, 20, 30, 4.0, 1.0, 60, 33)
    assert total == Cost(11, 22, 33, 8.0, 2.0, 66, 33)
    assert (total.security_share, total.clipped_share) == (0.25, 0.5)
    assert (Cost().security_share, Cost().clipped_share) == (0.0, 0.0)


def test_clipped_values_are_counted_where_they_were_clipped():
    tight = trained(job_of((2, 1), rounds=6, security={"clip": 0.05, "update_clip": 1e-4})).simulation.engine.meter
    wide = trained(job_of((2, 1), rounds=6)).simulation.engine.meter
    for party in (ACTIVE, "a0", "b0"):
        assert 0 < tight.of_kind(party, "train").clipped_share < 1
        assert tight.of_kind(party, "train").values_rounded == wide.of_kind(party, "train").values_rounded > 0
        assert wide.total(party).values_clipped == 0
    assert tight.of_kind("a0", "update").values_clipped > 0
    assert tight.total(AGGREGATOR).values_rounded == 0


def test_nothing_metered_costs_nothing():
    assert Meter().total(ACTIVE) == Cost()
    assert Meter().bytes_moved() == 0
