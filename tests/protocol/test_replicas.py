"""How a member gets back to where its group's model is."""

import pytest

from federation import job_of
from vfedsec.crypto.keys import Announcement
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.messages import Letter, Member
from vfedsec.protocol.replicas import Replicas
from vfedsec.protocol.roles import Roles

WORDS = memoryview(b"sum")
BOTH = [Member("a0", b"key"), Member("a1", b"key")]


@pytest.fixture
def group():
    job = job_of((3, 1))
    roles = Roles(job)
    membership = Membership(job, roles)
    for number, party in enumerate(roles.parties):
        membership.welcomed(party, Announcement(party, 0, number.to_bytes(32), bytes(64)), 0)
    return membership, Replicas(roles, membership)


def trained(group, *rounds, by=("a0", "a1")):
    """The group makes a sum in each round, and these members take it."""
    membership, replicas = group
    for round_index in rounds:
        replicas.add("group-a", [Member(party, b"key") for party in by], round_index, WORDS)
        for party in by:
            membership.reached(party, round_index)


def sums(group, party):
    found = group[1].sums_for(party)
    return None if found is None else [one.round_index for one in found]


def test_a_party_without_peers_needs_no_sums(group):
    trained(group, 1, 2)
    assert sums(group, "b0") == []


def test_a_member_that_is_where_its_group_is_needs_none(group):
    trained(group, 1, 2)
    assert sums(group, "a0") == []


def test_a_sum_that_nobody_has_taken_yet_is_for_everybody(group):
    group[1].add("group-a", BOTH, 1, WORDS)
    assert [sums(group, party) for party in ("a0", "a1", "a2")] == [[1], [1], [1]]


def test_a_member_that_missed_some_gets_them_all_in_order(group):
    trained(group, 1, 2, 5)
    assert sums(group, "a2") == [1, 2, 5]


def test_each_sum_says_what_it_continues_from(group):
    trained(group, 1, 2, 5)
    assert [(one.base_round, one.round_index) for one in group[1].sums_for("a2")] == [(0, 1), (1, 2), (2, 5)]


def test_a_member_that_missed_more_than_is_kept_needs_a_model(group):
    trained(group, *range(1, 8))
    assert sums(group, "a2") is None


def test_a_member_without_a_model_needs_one(group):
    membership, _ = group
    trained(group, 1)
    membership.reached("a2", -1)
    assert sums(group, "a2") is None


def test_sums_continue_from_a_model_that_is_on_its_way(group):
    trained(group, *range(1, 8))
    letter = Letter("a0", "a2", "donation", 1, b"", b"", WORDS)
    group[1].donations["a2"] = (letter, 6)
    assert sums(group, "a2") == [7]
    assert group[1].letter_for("a2") is letter
    assert group[1].letter_for("a1") is None


def test_a_branch_that_the_group_left_is_no_way_back(group):
    """A member that alone took a sum, and was away when the others went on without it, is on no path of theirs."""
    membership, replicas = group
    trained(group, 1, by=("a0", "a1", "a2"))
    membership.reached("a2", 2)
    membership.missed("a2", is_gone=True)
    replicas.add("group-a", BOTH, 3, WORDS)
    for party in ("a0", "a1"):
        membership.reached(party, 3)
    membership._standings["a2"].is_away = False
    assert sums(group, "a2") is None
    assert sums(group, "a0") == []


def test_nobody_is_further_than_the_last_sum(group):
    trained(group, 1, 5)
    group[1].check_claim("a2", 5)
    with pytest.raises(RemoteProtocolError, match="the last update is of round 5"):
        group[1].check_claim("a2", 6)
    group[1].check_claim("b0", 10**15)  # a model that nobody shares may say what it likes
