"""Who can be reckoned with, and who knows whose key."""

import pytest

from federation import ACTIVE, job_of
from vfedsec.crypto.keys import Announcement
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.roles import Roles


def key(party, number, issued_round=0):
    return Announcement(party, issued_round, number.to_bytes(32), bytes(64))


def membership_of(groups=(2, 1), **options):
    job = job_of(groups, **options)
    roles = Roles(job)
    membership = Membership(job, roles)
    for number, party in enumerate(roles.parties):
        membership.welcomed(party, key(party, number), 0)
    return membership


def test_nobody_is_known_before_it_is_greeted():
    membership = Membership(job_of(), Roles(job_of()))
    assert not membership.is_known("a0")
    membership.welcomed("a0", key("a0", 1), 0)
    assert membership.is_known("a0")


@pytest.mark.parametrize(
    ("party", "options", "forgiven"),
    [
        (ACTIVE, {}, 0),
        (ACTIVE, {"policy": "discard"}, 0),
        ("a0", {}, 0),
        ("b0", {}, 1),
        ("b0", {"fusion": "sum"}, 0),
        ("a0", {"policy": "discard"}, 1),
        ("b0", {"policy": "discard"}, 1),
        ("b0", {"policy": "discard", "fusion": "sum"}, 1),
    ],
)
def test_a_silence_is_forgiven_where_nobody_gains_by_leaving_the_party_out(party, options, forgiven):
    membership = membership_of(**options)
    for _ in range(forgiven):
        membership.missed(party, is_gone=False)
        assert party not in membership.away
    membership.missed(party, is_gone=False)
    assert membership.away == (party,)


def test_whoever_is_known_to_be_gone_is_away_at_once():
    membership = membership_of()
    membership.missed("b0", is_gone=True)
    assert membership.away == ("b0",)
    assert not membership.is_known("b0")
    assert "b0" not in membership.present()


def test_an_answer_ends_a_silence():
    membership = membership_of()
    for _ in range(5):
        membership.missed("b0", is_gone=False)
        membership.answered("b0")
    assert not membership.away


def test_an_answer_does_not_bring_back_who_is_away_and_a_welcome_does():
    membership = membership_of()
    membership.missed("b0", is_gone=True)
    membership.answered("b0")
    assert membership.away == ("b0",)
    membership.welcomed("b0", key("b0", 9, 1), 0)
    assert not membership.away


def test_a_welcome_leaves_one_key_and_no_knowledge():
    membership = membership_of()
    membership.confirm_news("b0", membership.news_for("b0"))
    membership.announced("b0", key("b0", 8, 1))
    membership.welcomed("b0", key("b0", 9, 2), 0)
    assert membership.holds("b0", key("b0", 9).key_id)
    assert not membership.holds("b0", key("b0", 8).key_id)
    assert [news.party for news in membership.news_for("b0")] == [ACTIVE]


def test_news_are_the_keys_of_partners_until_they_are_confirmed():
    membership = membership_of()
    news = membership.news_for("a0")
    assert [one.party for one in news] == [ACTIVE, "a1"]
    assert membership.news_for("a0") == news
    membership.confirm_news("a0", news)
    assert membership.news_for("a0") == []
    membership.announced("a1", key("a1", 9, 1))
    assert membership.news_for("a0") == [key("a1", 9, 1)]
    assert membership.news_for("b0") != [key("a1", 9, 1)]


def test_the_newest_key_goes_into_the_roster():
    membership = membership_of()
    assert membership.announced("a1", key("a1", 9, 1))
    assert not membership.announced("a1", key("a1", 9, 1))
    assert membership.member("a1").key_id == key("a1", 9).key_id


@pytest.mark.parametrize("issued_round", [-1, 0, 4, 5])
def test_a_key_that_partners_would_refuse_is_not_passed_on(issued_round):
    """Every roster that names it would be refused with it, and the run would end on one party's word."""
    membership = membership_of()
    membership.announced("b0", key("b0", 8, 5))
    for take in (membership.announced, lambda *args: membership.welcomed(*args, 0)):
        with pytest.raises(RemoteProtocolError, match=f"a key of round {issued_round} after one of 5"):
            take("b0", key("b0", 9, issued_round))
    assert membership.member("b0").key_id == key("b0", 8).key_id


def test_two_keys_of_a_party_are_kept():
    membership = membership_of()
    for number in (7, 8, 9):
        membership.announced("a1", key("a1", number, number))
    held = [number for number in range(10) if membership.holds("a1", key("a1", number).key_id)]
    assert held == [8, 9]


def test_what_was_told_of_keys_that_are_gone_is_forgotten():
    membership = membership_of()
    for number in range(100, 150):
        membership.announced("a1", key("a1", number, number))
        membership.confirm_news("a0", membership.news_for("a0"))
    assert len(membership._standings["a0"].told) <= 4
    assert membership.news_for("a0") == []


def test_a_group_is_where_its_furthest_member_is_that_is_not_away():
    membership = membership_of((3, 1))
    for party, model_round in (("a0", 5), ("a1", 7), ("a2", -1)):
        membership.reached(party, model_round)
    assert membership.group_round("a0") == 7
    membership.missed("a1", is_gone=True)
    assert membership.group_round("a0") == 5
