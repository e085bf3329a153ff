"""What a lost party costs, and how it comes back."""

import numpy as np
import pytest

from federation import ACTIVE, Federation, job_of, rows_of, started
from vfedsec import trace
from vfedsec.engines.faults import Fault
from vfedsec.protocol.messages import decode_request
from vfedsec.protocol.session import parse

BEFORE, MIDDLE, GONE = Fault.BEFORE, Fault.MIDDLE, Fault.GONE
EVERY_FAULT = pytest.mark.parametrize("fault", [BEFORE, MIDDLE, GONE])


def outcomes(rounds):
    return [event.outcome for event in rounds]


# -- exchanges --


@pytest.mark.parametrize("groups", [(1,), (1, 1), (1, 1, 1, 1)])
@pytest.mark.parametrize("fusion", ["concat", "sum"])
def test_a_round_of_lone_parties_is_one_exchange(groups, fusion):
    federation = started(groups, fusion=fusion, after=20)
    assert {event.exchanges for event in federation.rounds()} == {1}


@pytest.mark.parametrize("groups", [(2,), (3, 1), (2, 2)])
@pytest.mark.parametrize("fusion", ["concat", "sum"])
def test_a_round_with_a_group_of_several_is_at_most_two_exchanges(groups, fusion):
    federation = started(groups, fusion=fusion, after=20)
    assert {event.exchanges for event in federation.rounds()[1:]} == {2}
    asked = {name for heard in federation.heard if heard.exchange.kind == "update" for name in heard.exchange.requests}
    assert asked == {name for group in federation.job.groups if len(group.parties) > 1 for name in group.parties}


def test_new_keys_cost_no_exchange():
    federation = started((1, 1), rekey_every=2, after=20)
    assert {event.exchanges for event in federation.rounds()} == {1}
    assert len(federation.of_type(trace.KeyRenewed)) > 20


def test_evaluating_costs_an_exchange_a_batch():
    federation = Federation(job_of((1, 1), rounds=4))
    federation.simulation.train()
    kinds = [heard.exchange.kind for heard in federation.heard if heard.party == ACTIVE]
    batches = federation.simulation.active.batches
    assert kinds.count("test") == batches.count("test")
    assert kinds.count("plan") == 1


@pytest.mark.parametrize("name", ["a0", "b0"])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_pass_over_held_out_rows_begins_with_everybody_who_can_be_reached(name, rounds):
    """Metrics are to tell of the network, not of who happened to miss the round before."""
    federation = Federation(job_of(rounds=8))
    federation.start()
    federation.train_rounds(8 - rounds)
    federation.script.lose(name, GONE)
    federation.train_rounds(rounds)
    while federation.step():
        pass
    tested = [event for event in federation.of_type(trace.RoundEnded) if event.kind == "test"]
    rosters = [heard for heard in federation.heard if heard.exchange.kind == "test"]
    batches = federation.simulation.active.batches.count("test")
    assert len(tested) == batches
    assert {heard.party for heard in rosters} == set(federation.parties)
    assert len(rosters) == batches * len(federation.parties)


def test_a_party_that_cannot_be_reached_is_not_waited_for_before_a_pass():
    federation = Federation(job_of(rounds=8))
    federation.start()
    federation.train_rounds(4)
    federation.script.lose("b0", times=100)
    while federation.step():
        pass
    heard = [one.exchange for one in federation.heard if one.exchange.kind in ("plan", "test")]
    assert federation.simulation.aggregator.evaluations[-1].kind == "test"
    assert sum(exchange.kind == "plan" for exchange in heard if exchange.number > 8) == 1


# -- a party that is alone in its group --


@EVERY_FAULT
def test_a_lost_lone_party_costs_one_padded_round(fault):
    federation = started()
    federation.script.lose("b0", fault)
    ended = federation.train_rounds(4)
    assert outcomes(ended)[0] == "padded"
    assert outcomes(ended)[3] == "trained"
    assert ended[0].missing == ("b0",)


@pytest.mark.parametrize("fault", [BEFORE, MIDDLE])
def test_a_lone_party_that_missed_once_is_back_in_the_very_next_round(fault):
    federation = started()
    federation.script.lose("b0", fault)
    assert outcomes(federation.train_rounds(2)) == ["padded", "trained"]
    assert not federation.of_type(trace.PartyReturned)


def test_a_lone_party_that_stays_away_is_padded_until_it_comes_back():
    federation = started()
    federation.script.lose("b0", times=7)
    ended = federation.train_rounds(12)
    assert outcomes(ended)[:7] == ["padded"] * 7
    assert "b0" in ended[4].away
    assert outcomes(ended)[9:] == ["trained"] * 3
    assert [event.party for event in federation.of_type(trace.PartyReturned)] == ["b0"]


def test_a_padded_slice_gives_the_lost_party_and_the_actives_columns_no_gradient():
    federation = started((1, 1))
    federation.script.lose("b0")
    federation.train_rounds(1)
    before = federation.parties["b0"].model.dump()
    federation.train_rounds(1)
    requests = {heard.party: decode_request(parse(heard.request).body) for heard in federation.heard[-3:]}
    gradient = np.frombuffer(requests[ACTIVE].gradient, "<f4").reshape(16, 8)
    assert gradient[:, :4].any()
    assert not gradient[:, 4:].any()
    assert requests["a0"].gradient is not None
    assert requests["b0"].gradient is None
    assert federation.parties["b0"].model.dump() == before


def test_a_round_that_lost_every_slice_is_dropped_and_training_goes_on():
    federation = started((1, 1))
    federation.script.lose("a0")
    federation.script.lose("b0")
    assert outcomes(federation.train_rounds(2)) == ["dropped", "trained"]


# -- a group of several --


@EVERY_FAULT
def test_the_others_of_a_group_go_on_after_one_padded_round(fault):
    federation = started((3, 1))
    federation.script.lose("a1", fault, times=8)
    ended = federation.train_rounds(6)
    assert ended[0].missing == ("a1",)
    joined = [present[0] for present in presence_of(federation, 6)]
    assert joined == [False, True, True, True, True, True]


def presence_of(federation, last):
    """Of the last rounds, which slices could be used: read off the gradient's receivers."""
    rounds = federation.rounds()[-last:]
    result = []
    for event in rounds:
        asked = {
            heard.party
            for heard in federation.heard
            if heard.exchange.kind == "train" and heard.exchange.round_index == event.round_index
        }
        lost = set(event.missing)
        result.append([bool(asked & set(g.parties)) and not lost & set(g.parties) for g in federation.job.groups])
    return result


@EVERY_FAULT
@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_member_that_returns_has_its_peers_weights_bit_for_bit(fault, times):
    federation = started((3, 1), rekey_every=4)
    federation.script.lose("a1", fault, times=times)
    federation.train_rounds(times + 6)
    assert "trained" in federation.outcomes()[-3:]
    models = {federation.parties[name].model.dump() for name in ("a0", "a1", "a2")}
    assert len(models) == 1
    assert federation.oracle.applied


def test_a_restarted_member_gets_its_weights_and_the_groups_secret_from_a_peer():
    federation = started((3, 1))
    federation.restart("a1")
    assert federation.parties["a1"]._group_secret == b""
    assert federation.parties["a1"].model.dump() != federation.parties["a0"].model.dump()
    federation.train_rounds(8)
    assert federation.outcomes()[-1] == "trained"
    assert federation.parties["a1"].model.dump() == federation.parties["a0"].model.dump()
    assert federation.parties["a1"]._group_secret == federation.parties["a0"]._group_secret


def test_the_leader_of_a_group_is_a_member_like_any_other_when_it_is_restarted():
    federation = started((2, 1))
    federation.restart("a0")
    federation.train_rounds(8)
    assert federation.outcomes()[-1] == "trained"
    assert federation.parties["a0"].model.dump() == federation.parties["a1"].model.dump()


def test_an_update_that_lacks_a_member_moves_no_replica():
    federation = started((3, 1))
    before = {name: federation.parties[name].model.dump() for name in ("a0", "a1", "a2")}
    federation.step()
    assert federation.next_exchange.kind == "update"
    federation.script.lose("a2")
    federation.step()
    after = {name: federation.parties[name].model.dump() for name in ("a0", "a1", "a2")}
    # What came with the round's request had been applied by all; the update that was lost, by none.
    assert len(set(after.values())) == 1
    rounds = {federation.parties[name].model_round for name in ("a0", "a1", "a2")}
    assert len(rounds) == 1
    assert after != before
    federation.train_rounds(6)
    assert len({federation.parties[name].model.dump() for name in ("a0", "a1", "a2")}) == 1


def test_members_all_lost_at_once_come_back_as_one():
    federation = started((2, 1))
    federation.script.lose("a0", BEFORE, times=2)
    federation.script.lose("a1", MIDDLE, times=3)
    federation.train_rounds(9)
    assert federation.outcomes()[-1] == "trained"
    assert federation.parties["a0"].model.dump() == federation.parties["a1"].model.dump()


def test_a_group_whose_every_replica_is_lost_is_padded_where_there_are_others():
    federation = started((2, 1))
    federation.restart("a0")
    federation.restart("a1")
    assert "trained" not in outcomes(federation.train_rounds(10))
    assert outcomes(federation.train_rounds(3)) == ["padded"] * 3


def test_a_round_without_a_member_that_is_away_does_not_count_as_one_with_everybody():
    federation = started()
    federation.script.lose("a1", GONE, times=9)
    assert outcomes(federation.train_rounds(4)) == ["padded"] * 4


# -- the policies --


@EVERY_FAULT
def test_the_policy_discard_drops_the_round_that_lost_somebody(fault):
    federation = started((1, 1), policy="discard")
    federation.script.lose("b0", fault)
    assert outcomes(federation.train_rounds(3)) == ["dropped", "trained", "trained"]
    assert not federation.simulation.aggregator.tally.padded


def test_the_policy_discard_moves_no_model_in_a_dropped_round():
    federation = started((1, 1), policy="discard")
    federation.train_rounds(1)
    federation.script.lose("b0")
    top = federation.simulation.aggregator._conclusion._top
    before = top.dump()
    federation.train_rounds(1)
    assert top.dump() == before


def test_the_policy_discard_never_goes_on_without_somebody():
    federation = started((2, 1), policy="discard")
    federation.script.lose("a1", GONE, times=5)
    ended = federation.train_rounds(6)
    assert set(outcomes(ended)) == {"dropped", "trained"}
    for event in ended:
        assert (event.outcome == "trained") == (not event.missing and not event.away)


# -- the active party --


@EVERY_FAULT
@pytest.mark.parametrize("times", [1, 4])
def test_the_run_waits_for_the_active_party_and_goes_on(fault, times):
    federation = started()
    federation.script.lose(ACTIVE, fault, times=times)
    ended = federation.train_rounds(3)
    assert outcomes(ended) == ["dropped", "trained", "trained"]
    assert ACTIVE in ended[0].missing
    assert ACTIVE in [event.party for event in federation.of_type(trace.PartyReturned)]


def test_the_run_goes_on_with_a_restarted_active_party():
    federation = started()
    federation.restart(ACTIVE)
    assert outcomes(federation.train_rounds(4))[1:] == ["trained"] * 3


def test_no_batch_comes_twice_whoever_is_lost():
    """A second sum over the same rows, with other parties in it, would tell single embeddings."""
    federation = Federation(job_of((2, 1), rounds=30))
    federation.start()
    for loser in (ACTIVE, "a1", "b0", ACTIVE):
        federation.step_to("train")
        federation.script.lose(loser)
        federation.train_rounds(3)
    while federation.step():
        pass
    asked = [(event.round_index, event.kind) for event in federation.rounds()]
    assert len(asked) == len(set(asked))
    trained = [event for event in federation.rounds() if event.kind == "train"]
    assert len(trained) == 30
    assert sum(event.outcome == "dropped" for event in trained) >= 2


# -- replies that come too late --


def test_a_late_reply_is_never_opened():
    federation = started()
    federation.script.lose("b0", MIDDLE)
    federation.train_rounds(1)
    _, late = list(federation.parties["b0"]._cache._replies.values())[-1]
    federation.script.replies["b0"] = lambda data: late
    ended = federation.train_rounds(1)
    assert ended[0].missing == ("b0",)
    reasons = [event.reason for event in federation.of_type(trace.PartyLost)]
    assert "expected a reply to exchange" in reasons[-1]
    federation.train_rounds(4)
    assert federation.outcomes()[-1] == "trained"


def test_a_late_welcome_is_never_opened():
    federation = started()
    federation.script.lose("b0", GONE)
    federation.step()
    welcomes = []
    federation.script.replies["b0"] = lambda data: welcomes.append(data) or b""
    federation.train_rounds(1)
    federation.script.replies["b0"] = lambda data: welcomes[0]
    federation.train_rounds(1)
    assert not federation.of_type(trace.PartyReturned)
    federation.train_rounds(4)
    assert federation.outcomes()[-1] == "trained"


# -- keys in a run --


def test_keys_are_renewed_every_so_many_rounds_and_no_old_one_is_kept():
    federation = started((2, 1), rekey_every=5, after=40)
    for name in federation.parties:
        renewed = [event.round_index for event in federation.of_type(trace.KeyRenewed) if event.party == name]
        assert len(renewed) >= 7
        assert set(np.diff(renewed)) <= {5, 6}
        assert len(federation.parties[name]._keys._own) <= 2


def test_old_keys_of_partners_are_dropped_with_what_was_derived_from_them():
    federation = started((2, 1), rekey_every=2, after=40)
    for party in federation.parties.values():
        keys = party._keys
        assert all(len(known) <= 2 for known in keys._partners.values())
        assert all(own in keys._own and theirs in keys._partners[name] for name, theirs, own in keys._pairs)


def test_no_seat_outlives_the_key_it_was_taken_with():
    """It would go on masking under a key that was erased."""
    federation = started(rekey_every=2)
    for _ in range(60):
        federation.step()
        for party in federation.parties.values():
            used = {pair.own_key_id for seat in party._seats._seats.values() for pair in seat.pairs.values()}
            assert used <= party._keys._own.keys()


# -- predicting and ending --


@EVERY_FAULT
@pytest.mark.parametrize("when", [1, 2, 3, 10, 11])
def test_a_prediction_leaves_nobody_out_whoever_is_lost_on_the_way(fault, when):
    federation = Federation(job_of((2, 1), rounds=3))
    federation.simulation.train()
    expected = federation.simulation.predict()
    federation.script.clear()

    simulation = federation.simulation
    simulation.active.outputs.clear()
    federation.start(simulation.aggregator.predict())
    for _ in range(when):
        federation.step()
    federation.script.lose(ACTIVE, fault)
    while federation.step():
        pass
    batches = simulation.active.batches
    told = set(batches.ids_of(np.array(list(simulation.active.outputs))))
    assert told == set(expected)


def test_everybody_who_is_there_hears_of_the_end():
    federation = Federation(job_of((2, 1), rounds=5))
    federation.simulation.train()
    federation.simulation.finish()
    asked = {heard.party for heard in federation.heard if heard.exchange.kind == "finish"}
    assert asked == set(federation.parties)
    assert federation.of_type(trace.RunEnded)[0].reason == "finished"


def test_the_last_update_rides_on_the_end():
    job = job_of((2, 1), rounds=5)
    rows = rows_of(job)
    del rows[ACTIVE].batches._rows_by_kind["validation"], rows[ACTIVE].batches._rows_by_kind["test"]
    federation = Federation(job, rows)
    federation.simulation.train()
    last = federation.rounds()[-1].round_index
    assert {party.model_round for party in federation.parties.values()} == {last - 1}
    federation.simulation.finish()
    assert {party.model_round for party in federation.parties.values()} == {last}
    assert federation.parties["a0"].model.dump() == federation.parties["a1"].model.dump()
