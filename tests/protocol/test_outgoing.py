"""What the aggregator passes on, and what it asks of whom."""

import numpy as np
import pytest

from federation import ACTIVE, job_of
from vfedsec.crypto.keys import Announcement
from vfedsec.protocol.membership import Membership
from vfedsec.protocol.messages import Batch, Envelope, Letter, Member, Share
from vfedsec.protocol.outgoing import Carry, Outgoing
from vfedsec.protocol.roles import Roles

NOTHING, KEY_ID = memoryview(b""), bytes(8)


def outgoing_of(groups=(3, 1)):
    job = job_of(groups)
    roles = Roles(job)
    membership = Membership(job, roles)
    for number, party in enumerate(roles.parties):
        membership.welcomed(party, Announcement(party, 0, number.to_bytes(32), bytes(64)), 0)
    return Outgoing(roles, membership), membership


@pytest.mark.parametrize(
    ("size", "forwarded", "asked"),
    [(2, ["a0"], {"a0"}), (2, ["a0", "a1"], {"a0", "a1"}), (3, ["a1"], set()), (3, ["a0", "a2"], {"a0", "a2"})],
)
def test_a_group_of_three_is_asked_for_no_single_gradient(size, forwarded, asked):
    """Its members would learn whose it is."""
    outgoing, _ = outgoing_of((size, 1))
    members = tuple(Member(party, KEY_ID) for party in (*forwarded, "b0"))
    outgoing.carry = Carry(3, np.zeros((16, 8), np.float32), forwarded=members)
    assert set(outgoing.updates()) == asked


def sealed_for(party, key_id):
    """Which envelopes are kept of this one."""
    outgoing, membership = outgoing_of()
    held = membership.member("b0").key_id
    share = Share(1, {}, envelopes={party: Envelope(2, KEY_ID, held if key_id is None else key_id, NOTHING)})
    outgoing.take_riders(ACTIVE, share)
    return set(outgoing.envelopes)


def test_an_envelope_for_the_key_of_its_receiver_is_kept():
    assert sealed_for("b0", None) == {"b0"}


def test_an_envelope_for_a_key_that_its_receiver_has_no_more_is_dropped():
    assert sealed_for("b0", KEY_ID) == set()


@pytest.mark.parametrize("party", [ACTIVE, "nobody"])
def test_an_envelope_for_anybody_but_a_passive_party_is_dropped(party):
    assert sealed_for(party, None) == set()


def donations_kept(sender, receiver, *, by):
    """Of a letter that rides on somebody's share after a0 was asked to give its model to a2."""
    outgoing, membership = outgoing_of()
    membership.reached("a2", -1)
    outgoing.envelopes = {party: Envelope(1, KEY_ID, KEY_ID, NOTHING) for party in ("a0", "a1", "a2", "b0")}
    requests = outgoing.round(1, Batch("train", 0, 0), None, outgoing.roster())
    assert [member.party for member in requests["a0"].donate_to] == ["a2"]
    outgoing.clear()
    letter = Letter(sender, receiver, "donation", 1, KEY_ID, KEY_ID, NOTHING)
    outgoing.take_riders(by, Share(1, {}, donations=[letter]))
    return list(outgoing._replicas.donations)


def test_a_model_is_passed_on_from_the_peer_that_was_asked_for_it():
    assert donations_kept("a0", "a2", by="a0") == ["a2"]


@pytest.mark.parametrize(
    ("sender", "receiver", "by"),
    [("a1", "a2", "a0"), ("a0", "a2", "a1"), ("a1", "a2", "a1"), ("a0", "a1", "a0"), ("a0", "b0", "a0")],
)
def test_a_model_from_or_for_anybody_else_is_not_passed_on(sender, receiver, by):
    assert donations_kept(sender, receiver, by=by) == []
