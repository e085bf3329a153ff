"""A party's keys and what it knows of its partners'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import Drbg
from vfedsec.crypto.keys import EphemeralKey, Identity, RunContext, announce
from vfedsec.crypto.masking import Scratch
from vfedsec.errors import CryptoError, RemoteProtocolError
from vfedsec.protocol.keyring import KeyRing

RUN = RunContext(b"run", 0)
IDENTITIES = {name: Identity.from_seed(name.encode() * 32) for name in "pqr"}
PUBLIC = {name: identity.public for name, identity in IDENTITIES.items()}


def ring(name="p"):
    keys = KeyRing(name, IDENTITIES[name], PUBLIC, Drbg(name), Scratch())
    keys.begin(RUN)
    keys.renew(0)
    return keys


def news(entropy, issued_round, party="q", run=RUN):
    return announce(IDENTITIES[party], run, party, EphemeralKey(entropy.to_bytes(32), issued_round))


def test_two_rings_that_learn_of_each_other_share_a_pair():
    one, two = ring("p"), ring("q")
    one.learn(two.announcement())
    two.learn(one.announcement())
    there = one.pair("q", two.newest.key_id, one.newest.key_id)
    back = two.pair("p", one.newest.key_id, two.newest.key_id)
    assert back.incoming("x").open(1, there.outgoing("x").seal(1, b"hello")) == b"hello"


def test_the_same_ends_give_the_same_pair():
    """Another one would not know what the first has masked."""
    one, key = ring(), news(1, 0)
    one.learn(key)
    assert one.pair("q", key.key_id, one.newest.key_id) is one.pair("q", key.key_id, one.newest.key_id)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_a_partners_last_two_keys_are_kept_and_none_taken_that_is_not_newer(rounds):
    one, known = ring(), []
    for number, issued_round in enumerate(rounds, start=1):
        key = news(number, issued_round)
        if known and issued_round <= max(old.issued_round for old in known):
            with pytest.raises(RemoteProtocolError, match="not newer than the last"):
                one.learn(key)
        else:
            one.learn(key)
            known = [*known, key][-2:]
        assert list(one._partners["q"]) == [old.key_id for old in known]
        assert one.latest_of("q") == known[-1].key_id


def test_a_key_that_is_known_already_changes_nothing():
    one, older, newer = ring(), news(1, 0), news(2, 1)
    for key in (older, newer, older, newer, older):
        one.learn(key)
    assert one.latest_of("q") == newer.key_id


def test_a_dropped_key_of_a_partner_is_dropped_with_its_pairs():
    one, keys = ring(), [news(number, number) for number in range(1, 4)]
    for key in keys:
        one.learn(key)
        one.pair("q", key.key_id, one.newest.key_id)
    assert [ends[1] for ends in one._pairs] == [key.key_id for key in keys[1:]]
    with pytest.raises(CryptoError, match="does not hold q's key"):
        one.pair("q", keys[0].key_id, one.newest.key_id)


def test_an_own_key_is_erased_with_its_pairs_once_a_later_one_is_in_use():
    one, key = ring(), news(1, 0)
    one.learn(key)
    old = one.newest.key_id
    one.pair("q", key.key_id, old)
    new = one.renew(5).key_id
    one.pair("q", key.key_id, new)
    assert not one.retire_before(old)
    assert one.retire_before(new)
    assert list(one._own) == [new]
    assert [ends[2] for ends in one._pairs] == [new]
    with pytest.raises(CryptoError, match="does not hold its own key"):
        one.pair("q", key.key_id, old)


def test_a_key_that_is_not_held_erases_none():
    one = ring()
    one.renew(1)
    assert not one.retire_before(bytes(8))
    assert len(one._own) == 2


def test_a_new_incarnation_keeps_nothing():
    one = ring()
    one.learn(news(1, 0))
    one.begin(RunContext(b"run", 1))
    assert not one._own
    assert one.latest_of("q") is None


def test_a_new_session_of_the_same_run_keeps_what_is_known_of_partners_alone():
    one, key = ring(), news(1, 0)
    one.learn(key)
    one.pair("q", key.key_id, one.newest.key_id)
    one.begin(RUN)
    assert one.latest_of("q") == key.key_id
    assert not one._own
    assert not one._pairs


@pytest.mark.parametrize("party", ["p", "s"])
def test_a_key_of_nobody_known_or_of_oneself_is_refused(party):
    one = ring()
    stranger = announce(IDENTITIES["q"], RUN, party, EphemeralKey(bytes(range(32)), 0))
    with pytest.raises(RemoteProtocolError, match="not a partner"):
        one.learn(stranger)
    assert party not in one._partners


@pytest.mark.parametrize("run", [RunContext(b"x", 0), RunContext(b"run", 1)])
def test_a_key_of_another_run_is_refused(run):
    one = ring()
    with pytest.raises(CryptoError, match="does not verify"):
        one.learn(news(1, 0, run=run))
    assert one.latest_of("q") is None


def test_a_forged_key_does_not_push_out_a_genuine_one():
    one, genuine = ring(), news(1, 0)
    one.learn(genuine)
    for number in range(2, 5):
        with pytest.raises(CryptoError):
            one.learn(announce(IDENTITIES["r"], RUN, "q", EphemeralKey(number.to_bytes(32), 9)))
    assert list(one._partners["q"]) == [genuine.key_id]


def test_announcements_are_of_the_newest_key():
    one = ring()
    new = one.renew(8)
    assert one.announcement().key_id == new.key_id == one.newest.key_id
    assert one.announcement().issued_round == 8


def test_a_repr_shows_no_key():
    assert "Ed25519" not in repr(ring())
