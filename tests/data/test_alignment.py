"""Private set intersection against plain set intersection."""

from contextlib import suppress

import private_set_intersection.python as psi
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.data.alignment import ActiveAlignment, PassiveAlignment, new_key
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW

ACTIVE_KEY, PASSIVE_KEY, OTHER_KEY = new_key(), new_key(), new_key()
ID_SETS = st.lists(st.text("abé日", max_size=3), unique=True, max_size=12)


def aligned(active_ids, passive_ids):
    active = ActiveAlignment(active_ids, ACTIVE_KEY)
    reply = PassiveAlignment(passive_ids, PASSIVE_KEY).reply("bank", active.request())
    return active.match("shop", *reply).tolist()


def plainly(active_ids, passive_ids):
    return [passive_ids.index(i) if i in passive_ids else ABSENT_ROW for i in active_ids]


@settings(max_examples=40, deadline=None)
@given(ID_SETS, ID_SETS)
def test_matches_are_those_of_a_plain_intersection(active_ids, passive_ids):
    assert aligned(active_ids, passive_ids) == plainly(active_ids, passive_ids)


def test_a_shared_id_is_matched_at_its_place():
    assert aligned(["x", "Zoë", "日本"], ["日本", "y", "Zoë"]) == [ABSENT_ROW, 2, 0]


def test_nothing_shared_gives_absent_rows_only():
    assert aligned(["a", "b"], ["c"]) == [ABSENT_ROW, ABSENT_ROW]


def test_one_request_serves_two_passive_parties():
    active = ActiveAlignment(["a", "b"], ACTIVE_KEY)
    replies = [
        PassiveAlignment(ids, key).reply("bank", active.request())
        for ids, key in ((["b"], PASSIVE_KEY), (["x", "a"], OTHER_KEY))
    ]
    assert [active.match("p", *r).tolist() for r in replies] == [[-1, 0], [1, -1]]


def test_no_message_holds_an_id():
    active = ActiveAlignment(["client-17"], ACTIVE_KEY)
    reply = PassiveAlignment(["client-17"], PASSIVE_KEY).reply("bank", active.request())
    assert not any(b"client" in body for body in (active.request(), *reply))


def test_blinded_ids_of_two_keys_have_nothing_in_common():
    requests = [ActiveAlignment(["a", "b"], key).request() for key in (ACTIVE_KEY, OTHER_KEY)]
    first, second = (set(psi.Request.FromString(body).encrypted_elements) for body in requests)
    assert first.isdisjoint(second)


def test_every_new_key_is_another():
    assert new_key() != new_key()


def elements_of(*elements, reveal=True):
    return psi.Request(reveal_intersection=reveal, encrypted_elements=elements).SerializeToString()


OFF_CURVE = b"\x02" + b"\xff" * 32
UNCOMPRESSED = (
    ec.derive_private_key(7, ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
)
MALFORMED = [
    b"garbage",
    elements_of(b""),
    elements_of(b"\x00"),
    elements_of(OFF_CURVE),
    elements_of(UNCOMPRESSED),
]


@pytest.mark.parametrize("request_bytes", [*MALFORMED, elements_of(reveal=False), b""])
def test_a_malformed_request_is_refused(request_bytes):
    with pytest.raises(RemoteProtocolError, match="bank sent alignment elements that cannot be"):
        PassiveAlignment(["a"], PASSIVE_KEY).reply("bank", request_bytes)


@pytest.mark.parametrize("elements", MALFORMED)
def test_malformed_elements_of_a_reply_are_refused(elements):
    active = ActiveAlignment(["a"], ACTIVE_KEY)
    answer, _ = PassiveAlignment(["a"], PASSIVE_KEY).reply("bank", active.request())
    with pytest.raises(RemoteProtocolError, match="shop sent alignment elements that cannot be"):
        active.match("shop", answer, elements)


def test_a_malformed_answer_is_refused():
    with pytest.raises(RemoteProtocolError, match="cannot be read"):
        ActiveAlignment(["a"], ACTIVE_KEY).match("shop", b"garbage", elements_of())


def test_an_answer_of_another_length_is_refused():
    active = ActiveAlignment(["a", "b"], ACTIVE_KEY)
    shorter = ActiveAlignment(["a"], ACTIVE_KEY).request()
    reply = PassiveAlignment(["a"], PASSIVE_KEY).reply("bank", shorter)
    with pytest.raises(RemoteProtocolError, match="request of 2 elements with 1"):
        active.match("shop", *reply)


def test_a_repeated_element_is_refused():
    element = psi.Request.FromString(ActiveAlignment(["a"], ACTIVE_KEY).request())
    twice = elements_of(*element.encrypted_elements, *element.encrypted_elements)
    with pytest.raises(RemoteProtocolError, match="the same alignment element twice"):
        PassiveAlignment(["a"], PASSIVE_KEY).reply("bank", twice)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_alignment_gets_fed_garbage(garbage):
    active = ActiveAlignment(["a"], ACTIVE_KEY)
    with suppress(RemoteProtocolError):
        PassiveAlignment(["a"], PASSIVE_KEY).reply("bank", garbage)
    with pytest.raises(RemoteProtocolError):
        active.match("shop", garbage, garbage)
