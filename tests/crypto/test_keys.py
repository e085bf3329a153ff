"""Identities, ephemeral keys and signed announcements."""

import hashlib

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.crypto.keys import (
    EphemeralKey,
    Identity,
    PublicIdentity,
    RunContext,
    announce,
    check_announcement,
    key_id,
)
from vfedsec.errors import CryptoError

SEEDS = st.binary(min_size=32, max_size=32)
RUN = RunContext(b"run", 0)
IDENTITY = Identity.from_seed(bytes(32))
KEY = EphemeralKey(bytes(range(32)), 5)

# RFC 7748, section 6.1.
ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
SHARED = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")

# RFC 8032, section 7.1, test 1: a signature of nothing.
SIGNER = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
SIGNER_PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe2"
    "4655141438e7a100b"
)


def x25519_by_hand(scalar, u):
    """RFC 7748, section 5: the Montgomery ladder on plain integers."""
    prime = 2**255 - 19
    k = int.from_bytes(bytes([scalar[0] & 248, *scalar[1:31], scalar[31] & 127 | 64]), "little")
    x1 = int.from_bytes(u, "little") % 2**255 % prime
    x2, z2, x3, z3 = 1, 0, x1, 1
    for bit in reversed(range(255)):
        swap = k >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        x3, z3 = (d * a + c * b) ** 2 % prime, x1 * (d * a - c * b) ** 2 % prime
        e = a * a - b * b
        x2, z2 = a * a * b * b % prime, e * (a * a + 121665 * e) % prime
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, prime - 2, prime) % prime).to_bytes(32, "little")


def test_agreement_gives_the_published_vector():
    assert EphemeralKey(ALICE, 0).public == ALICE_PUBLIC
    assert EphemeralKey(BOB, 0).agree(ALICE_PUBLIC) == SHARED


@given(SEEDS, SEEDS)
def test_agreement_is_that_of_a_second_implementation(own, other):
    partner = EphemeralKey(other, 0).public
    assert EphemeralKey(own, 0).agree(partner) == x25519_by_hand(own, partner)


@given(SEEDS, SEEDS)
def test_both_sides_agree_on_one_secret(first, second):
    one, two = EphemeralKey(first, 0), EphemeralKey(second, 0)
    assert one.agree(two.public) == two.agree(one.public)


@pytest.mark.parametrize("public", [bytes(32), (1).to_bytes(32, "little"), b"", bytes(31), bytes(33)])
def test_a_degenerate_public_key_is_refused(public):
    with pytest.raises(CryptoError, match="no shared secret"):
        KEY.agree(public)


def test_a_key_is_named_by_its_hash():
    assert KEY.key_id == key_id(KEY.public) == hashlib.sha256(KEY.public).digest()[:8]


def test_signing_gives_the_published_vector():
    identity = Identity.from_seed(SIGNER)
    assert identity.public.raw == SIGNER_PUBLIC
    assert identity.sign(b"") == SIGNATURE


@given(st.binary(max_size=40))
def test_a_signature_verifies(message):
    IDENTITY.public.verify(IDENTITY.sign(message), message)


@given(st.binary(max_size=40), st.integers(0, 64 * 8 - 1))
def test_any_flipped_bit_in_a_signature_is_an_error(message, bit):
    signature = bytearray(IDENTITY.sign(message))
    signature[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CryptoError, match="does not verify"):
        IDENTITY.public.verify(bytes(signature), message)


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_signature_of_another_length_is_an_error(length):
    with pytest.raises(CryptoError, match="does not verify"):
        IDENTITY.public.verify(bytes(length), b"")


def test_an_identity_survives_its_file():
    assert Identity.from_pem(IDENTITY.pem()).public.raw == IDENTITY.public.raw


def test_a_public_identity_survives_its_text():
    assert PublicIdentity.from_text(IDENTITY.public.text()).raw == IDENTITY.public.raw


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "A" * 43, "AAAA" * 11])
def test_a_text_that_is_no_identity_is_refused(text):
    with pytest.raises(CryptoError, match="32 bytes"):
        PublicIdentity.from_text(text)


def private_pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        private_pem(X25519PrivateKey.from_private_bytes(bytes(32))),
        private_pem(IDENTITY._key, BestAvailableEncryption(b"word")),
    ],
    ids=["empty", "broken", "another kind", "encrypted"],
)
def test_a_file_that_holds_no_identity_is_refused(pem):
    with pytest.raises(CryptoError, match="an identity file holds"):
        Identity.from_pem(pem)


def test_no_private_half_stands_in_a_repr():
    for shown in (repr(IDENTITY), repr(KEY)):
        assert "redacted" in shown
        assert bytes(32).hex() not in shown
        assert bytes(range(32)).hex() not in shown


# -- announcements --


def announced(run=RUN, party="p", key=KEY):
    return announce(IDENTITY, run, party, key)


def test_an_announcement_verifies_and_names_its_key():
    announcement = announced()
    check_announcement(announcement, IDENTITY.public, RUN)
    assert (announcement.party, announcement.issued_round) == ("p", 5)
    assert (announcement.public_key, announcement.key_id) == (KEY.public, KEY.key_id)


@given(st.integers(0, 8 * 96 - 1))
def test_any_flipped_bit_in_an_announced_key_or_its_signature_is_an_error(bit):
    announcement = announced()
    both = bytearray(announcement.public_key + announcement.signature)
    both[bit // 8] ^= 1 << bit % 8
    forged = msgspec.structs.replace(announcement, public_key=bytes(both[:32]), signature=bytes(both[32:]))
    with pytest.raises(CryptoError, match="does not verify"):
        check_announcement(forged, IDENTITY.public, RUN)


@pytest.mark.parametrize("change", [{"party": "q"}, {"issued_round": 6}, {"issued_round": -1}, {"signature": b""}])
def test_an_announcement_that_was_changed_is_an_error(change):
    with pytest.raises(CryptoError, match="does not verify"):
        check_announcement(msgspec.structs.replace(announced(), **change), IDENTITY.public, RUN)


@pytest.mark.parametrize("run", [RunContext(b"other", 0), RunContext(b"run", 1), RunContext(b"", 0)])
def test_an_announcement_is_of_one_run_and_incarnation(run):
    with pytest.raises(CryptoError, match="does not verify"):
        check_announcement(announced(), IDENTITY.public, run)


def test_an_announcement_of_another_identity_is_an_error():
    with pytest.raises(CryptoError, match="does not verify"):
        check_announcement(announced(), Identity.from_seed(bytes(range(32))).public, RUN)
