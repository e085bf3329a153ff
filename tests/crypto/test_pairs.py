"""What two parties share."""

import hashlib
import hmac
from itertools import combinations, product

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.keys import EphemeralKey, RunContext
from vfedsec.crypto.masking import Scratch
from vfedsec.crypto.pairs import Pair, derive
from vfedsec.errors import CryptoError, OpenFailed

RUN = RunContext(b"run", 0)
P, Q = EphemeralKey(bytes(range(32)), 0), EphemeralKey(bytes(range(1, 33)), 0)


def pair(own=("p", P), partner=("q", Q.public), run=RUN):
    return Pair(run, own, partner, Scratch())


def ends(run=RUN, names=("p", "q"), keys=(P, Q)):
    """The same pair from both sides."""
    one, two = zip(names, keys, strict=True)
    return pair(one, (two[0], two[1].public), run), pair(two, (one[0], one[1].public), run)


def hkdf_by_hand(secret, info, length=32):
    """RFC 5869 with SHA-256 and no salt, from the standard library."""
    pseudo_random_key = hmac.digest(bytes(32), secret, hashlib.sha256)
    output, block = b"", b""
    for counter in range(1, -(-length // 32) + 1):
        block = hmac.digest(pseudo_random_key, block + info + bytes([counter]), hashlib.sha256)
        output += block
    return output[:length]


def mask_of(stream, count=64):
    words = np.zeros(count, np.uint32)
    stream.mask(words, 1, 0, add=True)
    return words.tobytes()


def test_the_second_implementation_gives_the_published_vector():
    """RFC 5869, test case 3."""
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    assert hkdf_by_hand(b"\x0b" * 22, b"", 42).hex() == expected


@given(st.binary(min_size=1, max_size=40), st.lists(st.binary(max_size=9) | st.text(max_size=9) | st.integers(0, 99)))
def test_keys_are_derived_as_a_second_implementation_does(secret, info):
    assert derive(secret, *info) == hkdf_by_hand(secret, b"vfedsec/1 " + msgspec.msgpack.encode(tuple(info)))


def test_the_key_of_a_purpose_binds_run_names_and_public_keys():
    info = msgspec.msgpack.encode((("forward mask",), b"run", 0, ("p", P.public), ("q", Q.public)))
    key = hkdf_by_hand(P.agree(Q.public), b"vfedsec/1 " + info)
    words = np.zeros(8, np.uint32)
    pair().forward_masks().mask(words, 3, 2, add=True)
    assert words.tobytes() == gcm_stream(key, (2 << 64 | 3).to_bytes(12), 32)


def gcm_stream(key, nonce, length):
    return AESGCM(key).encrypt(nonce, bytes(length), None)[:length]


def test_both_sides_make_the_same_masks():
    one, two = ends()
    assert mask_of(one.forward_masks()) == mask_of(two.forward_masks())
    assert mask_of(one.update_masks()) == mask_of(two.update_masks())


@given(st.text("abcxyz0", min_size=1, max_size=4), st.text("abcxyz0", min_size=1, max_size=4))
def test_exactly_one_side_adds(first, second):
    if first != second:
        one, two = ends(names=(first, second))
        assert one.adds != two.adds


def test_the_masks_of_both_sides_cancel():
    total = np.zeros(10, np.uint32)
    for side in ends():
        side.forward_masks().mask(total, 1, 0, add=side.adds)
    assert not total.any()


def every_use(run=RUN, names=("p", "q"), keys=(P, Q)):
    """What each key of a pair makes, one entry a key."""
    one, two = ends(run, names, keys)
    yield mask_of(one.forward_masks())
    yield mask_of(one.update_masks())
    for purpose, (sender, _) in product(("envelope", "group"), ((one, two), (two, one))):
        yield sender.outgoing(purpose).seal(1, bytes(256))[:256]


def test_no_two_uses_share_a_key():
    others = [
        dict(run=RunContext(b"other", 0)),
        dict(run=RunContext(b"run", 1)),
        dict(names=("p", "r")),
        dict(keys=(P, EphemeralKey(bytes(range(2, 34)), 0))),
    ]
    uses = [use for change in ({}, *others) for use in every_use(**change)]
    for one, two in combinations(uses, 2):
        assert one != two


def test_what_one_side_seals_the_other_opens():
    one, two = ends()
    sealed = one.outgoing("envelope").seal(4, b"rows")
    assert two.incoming("envelope").open(4, sealed) == b"rows"


def test_a_seal_does_not_open_for_another_purpose():
    one, two = ends()
    sealed = one.outgoing("envelope").seal(4, b"rows")
    with pytest.raises(OpenFailed):
        two.incoming("group").open(4, sealed)


def test_what_a_side_sealed_itself_does_not_open_as_the_partners():
    one, _ = ends()
    sealed = one.outgoing("envelope").seal(4, b"rows")
    with pytest.raises(OpenFailed):
        one.incoming("envelope").open(4, sealed)


def test_a_pair_gives_one_stream_a_purpose():
    """A second stream under the same key would know nothing of what the first has masked."""
    one = pair()
    assert one.forward_masks() is one.forward_masks()
    assert one.update_masks() is one.update_masks()
    assert one.outgoing("envelope") is one.outgoing("envelope")


def test_a_partner_with_a_degenerate_key_is_refused():
    with pytest.raises(CryptoError, match="no shared secret"):
        pair(partner=("q", bytes(32)))


def test_no_secret_stands_in_a_repr():
    one = pair()
    assert "redacted" in repr(one)
    assert P.agree(Q.public).hex() not in repr(one)
    assert "redacted" in repr(one.forward_masks())
    assert "redacted" in repr(one.outgoing("envelope"))
