"""When the aggregator gives up, and on whom."""

import msgspec
import pytest

from federation import ACTIVE, Federation, job_of
from vfedsec.engines.faults import Fault, Faults
from vfedsec.errors import PartyTimeout

EVERY_FAULT = pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.MIDDLE, Fault.GONE])


class Dead(Faults):
    """Some parties never answer, from the first exchange of a kind on."""

    def __init__(self, parties, kind, fault):
        self.parties, self.kind, self.fault = parties, kind, fault
        self.has_begun = False

    def strike(self, exchange, party):
        self.has_begun |= exchange.kind == self.kind
        return self.fault if self.has_begun and party in self.parties else Fault.NONE


class SlowThenDead(Dead):
    """A party that comes too late for one exchange, and is gone from a later one on."""

    def __init__(self, party, slow_kind, kind):
        super().__init__([party], kind, Fault.GONE)
        self.slow_kind = slow_kind

    def strike(self, exchange, party):
        if exchange.kind == self.slow_kind and party in self.parties:
            self.slow_kind = ""
            return Fault.BEFORE
        return super().strike(exchange, party)


class TakingTurns(Faults):
    """In every training round another party is lost, and none twice in a row."""

    def strike(self, exchange, party):
        loser = ("a0", "b0")[exchange.round_index % 2]
        return Fault.BEFORE if exchange.kind == "train" and party == loser else Fault.NONE


def run_with(faults, groups=(2, 1), **options):
    job = job_of(groups, **({"rounds": 6, "deadline": 1.0} | options))
    job = msgspec.structs.replace(job, dropout=msgspec.structs.replace(job.dropout, patience=30.0))
    federation = Federation(job, faults=faults)
    federation.simulation.train()
    return federation


@EVERY_FAULT
@pytest.mark.parametrize("kind", ["hello", "mail", "prepare", "plan", "train", "test"])
def test_when_patience_with_the_active_party_ends_it_is_named(fault, kind):
    with pytest.raises(PartyTimeout, match=rf"{ACTIVE} did not answer .* within 30 s \(dropout.patience\)"):
        run_with(Dead([ACTIVE], kind, fault))


@EVERY_FAULT
@pytest.mark.parametrize("kind", ["hello", "mail", "prepare"])
def test_when_patience_with_a_party_that_is_not_prepared_ends_it_is_named(fault, kind):
    with pytest.raises(PartyTimeout, match="b0 did not answer"):
        run_with(Dead(["b0"], kind, fault))


def test_who_refuses_what_another_sent_is_named_with_its_reason():
    """It is not the one to blame, and whoever reads of the end should not look there."""
    federation = Federation(job_of((1,)), watched=False)
    liar = federation.parties["a0"]
    liar._setup.preparation.begin = lambda: [(ACTIVE, b"no letter of a preparation")]
    with pytest.raises(PartyTimeout, match=f"{ACTIVE} did not answer the mail .*: refused: a0 sent a letter"):
        federation.simulation.prepare()


def test_a_greeting_that_is_refused_is_told_with_its_reason():
    federation = Federation(job_of((1,)), watched=False)
    federation.parties["a0"]._digest = b"of another job"
    with pytest.raises(PartyTimeout, match=r"a0 did not answer a greeting .*: refused: a0 cannot join: the agg"):
        federation.simulation.prepare()


@pytest.mark.parametrize(("slow", "dead"), [("hello", "mail"), ("mail", "prepare")])
def test_why_a_party_was_lost_before_it_answered_again_is_not_the_reason(slow, dead):
    with pytest.raises(PartyTimeout, match=r"b0 did not answer .* \(dropout.patience\): not reachable$"):
        run_with(SlowThenDead("b0", slow, dead))


@EVERY_FAULT
@pytest.mark.parametrize("kind", ["train", "test"])
def test_when_patience_with_every_passive_party_ends_they_are_named(fault, kind):
    with pytest.raises(PartyTimeout, match="a0, a1, b0 did not answer"):
        run_with(Dead(["a0", "a1", "b0"], kind, fault))


@EVERY_FAULT
@pytest.mark.parametrize("kind", ["train", "test"])
def test_a_run_goes_on_to_its_end_without_a_party_that_is_gone_for_good(fault, kind):
    federation = run_with(Dead(["a1"], kind, fault))
    assert federation.simulation.aggregator.evaluations[-1].kind == "test"


@EVERY_FAULT
@pytest.mark.parametrize("kind", ["train", "test"])
def test_the_policy_discard_gives_up_on_a_party_that_is_gone_for_good(fault, kind):
    """In training and in evaluation alike: no round that needs everybody would ever be of use again."""
    with pytest.raises(PartyTimeout, match="b0 did not answer"):
        run_with(Dead(["b0"], kind, fault), policy="discard", rounds=100)


def test_patience_ends_too_when_parties_take_turns_in_spoiling_rounds():
    with pytest.raises(PartyTimeout, match="with anything that can be used"):
        run_with(TakingTurns(), groups=(1, 1), policy="discard", rounds=50)


def test_a_group_whose_every_replica_is_lost_does_not_hang_the_run():
    """Nobody has the group's model any more: with no other group there is nothing to go on with."""
    federation = Federation(job_of((2,), rounds=5000))
    federation.start()
    federation.train_rounds(2)
    federation.restart("a0")
    federation.restart("a1")
    with pytest.raises(PartyTimeout):
        while federation.step():
            assert len(federation.heard) < 20_000
