"""From floats to masked words, in every mode."""

import numpy as np
import pytest

from federation import Drbg, job_of
from vfedsec.crypto.keys import EphemeralKey, RunContext
from vfedsec.crypto.masking import Scratch
from vfedsec.crypto.pairs import Pair
from vfedsec.errors import DataError, LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.secure_layer import GroupBlinds, SecureLayer, ShareFormats

RUN = RunContext(b"run", 0)
MODES = pytest.mark.parametrize("mode", ["secure", "insecure-integers", "insecure-plain"])
VALUES = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)


def layer(mode="secure", seed=b"seed", **options):
    return SecureLayer(job_of(mode=mode, **options), seed, float)


def pairs(*names):
    entropy = Drbg("layer")
    keys = {name: EphemeralKey(entropy(32), 0) for name in names}
    return {
        own: [Pair(RUN, (own, keys[own]), (other, keys[other].public), Scratch()) for other in names if other != own]
        for own in names
    }


def shared(mode, round_index=1, slice_index=0, values=VALUES, seed=b"seed", **options):
    return layer(mode, seed, **options).share(values, round_index, slice_index, pairs("p", "q")["p"])


@MODES
def test_a_share_without_a_partner_is_refused(mode):
    with pytest.raises(LocalProtocolError, match="slice 2 of round 7 has no partner: not sent"):
        layer(mode).share(VALUES, 7, 2, [])


@pytest.mark.parametrize(
    ("mode", "word_bits", "size"), [("secure", 32, 4), ("secure", 16, 2), ("insecure-plain", 32, 4)]
)
def test_a_share_has_as_many_bytes_as_the_job_says(mode, word_bits, size):
    assert shared(mode, word_bits=word_bits).nbytes == VALUES.size * size


@MODES
def test_sharing_leaves_the_values_as_they_were(mode):
    values = VALUES.copy()
    shared(mode, values=values)
    assert np.array_equal(values, VALUES)


def test_only_the_secure_mode_masks():
    bare = shared("insecure-integers")
    numbers = layer().formats.embedding.numbers
    assert np.abs(numbers.decode(bare) - VALUES).max() < 1e-6
    assert np.array_equal(shared("insecure-plain"), VALUES)
    assert np.abs(numbers.decode(shared("secure")) - VALUES).max() > 1


def test_rounding_follows_the_seed_the_round_and_the_slice():
    first = shared("insecure-integers")
    assert np.array_equal(first, shared("insecure-integers"))
    for other in ({"round_index": 2}, {"slice_index": 1}, {"seed": b"other"}):
        assert not np.array_equal(first, shared("insecure-integers", **other))


def test_embeddings_and_updates_are_rounded_by_noise_of_their_own():
    party = layer()
    forward, update = (noise.window(1, 0, 64) for noise in (party._forward_noise, party._update_noise))
    assert (forward != update).any()


def test_clipped_values_are_counted():
    values = VALUES.copy()
    values[0, :3] = 100
    party = layer()
    party.share(values, 1, 0, pairs("p", "q")["p"])
    party.share(values, 2, 0, pairs("p", "q")["p"])
    assert (party.clipped, party.rounded) == (6, 2 * values.size)


def test_nothing_is_rounded_or_clipped_in_the_plain_mode():
    party = layer("insecure-plain")
    party.share(np.full((16, 4), 100, np.float32), 1, 0, pairs("p", "q")["p"])
    assert (party.clipped, party.rounded) == (0, 0)


@pytest.mark.parametrize("mode", ["secure", "insecure-integers"])
def test_an_embedding_that_is_not_finite_is_refused(mode):
    with pytest.raises(DataError, match="not finite"):
        shared(mode, values=np.full((16, 4), np.nan, np.float32))


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_memory_order_of_an_embedding_makes_no_difference(order):
    assert np.array_equal(shared("secure", values=np.array(VALUES, order=order)), shared("secure"))


def test_a_slice_of_a_wider_embedding_is_shared_like_a_copy_of_it():
    wide = np.concatenate([VALUES, VALUES], axis=1)
    assert np.array_equal(shared("secure", values=wide[:, 4:]), shared("secure"))


@MODES
def test_a_share_off_the_wire_has_exactly_the_expected_length(mode):
    formats = ShareFormats(job_of(mode=mode)).embedding
    assert len(formats.read(bytes(64), 16)) == 16
    for length in (0, 60, 63, 68):
        with pytest.raises(RemoteProtocolError, match=f"expected a share of 64 bytes, got {length}"):
            formats.read(bytes(length), 16)


@MODES
def test_unblinding_gives_the_sum_of_the_gradients(mode):
    gradients = {name: np.random.default_rng(i).normal(size=37).astype(np.float32) for i, name in enumerate("pqr")}
    blinds, partners = GroupBlinds(b"secret", RUN, "group", Scratch()), pairs(*"pqr")
    words = []
    for name in "pqr":
        member = layer(mode, name.encode())
        words.append(member.blind(gradients[name], 3, partners[name], blinds.of(name, b"key")).copy())
    total = ShareFormats(job_of(mode=mode)).update.add(words)
    raw = memoryview(total.tobytes())
    found = layer(mode).unblind(raw, 37, 3, [blinds.of(name, b"key") for name in "pqr"])
    assert np.abs(found - sum(gradients.values())).max() < 1e-5


def test_a_sum_of_another_length_is_refused():
    with pytest.raises(RemoteProtocolError, match="expected a share of 148 bytes"):
        layer().unblind(memoryview(bytes(40)), 37, 3, [])


def test_members_rounds_groups_and_incarnations_have_blinds_of_their_own():
    def mask(secret=b"s", context=RUN, group="g", member="p", key_id=b"k", round_index=1):
        words = np.zeros(16, np.uint32)
        GroupBlinds(secret, context, group, Scratch()).of(member, key_id).mask(words, round_index, 0, add=True)
        return words.tobytes()

    others = [{"secret": b"t"}, {"context": RunContext(b"run", 1)}, {"group": "h"}, {"member": "q"}, {"key_id": b"l"}]
    others.append({"round_index": 2})
    assert len({mask(), *(mask(**other) for other in others)}) == 7
    assert mask() == mask()


def test_a_repr_shows_no_secret():
    assert "secret=<redacted>" in repr(GroupBlinds(b"hidden", RUN, "g", Scratch()))


def test_time_spent_is_measured_by_the_clock_that_was_handed_in():
    readings = iter(range(100))
    timed = SecureLayer(job_of(), b"seed", lambda: float(next(readings)))
    timed.share(VALUES, 1, 0, pairs("p", "q")["p"])
    assert timed.seconds == 1.0
    assert timed.timed(lambda: "done") == "done"
    assert timed.seconds == 2.0
    with pytest.raises(ZeroDivisionError):
        timed.timed(lambda: 1 // 0)
    assert timed.seconds == 3.0
