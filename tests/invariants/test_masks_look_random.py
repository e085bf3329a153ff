"""A masked array is indistinguishable from uniform words, whatever the input.

Chi-square over the bytes of many arrays, each byte of a word on its own. With 255 degrees of freedom the limit below is
passed by chance less than once in ten million; keys repeat from run to run here, so it is passed always or never.
"""

from itertools import pairwise

import numpy as np
import pytest

from federation import Drbg, Federation, job_of
from vfedsec.crypto.keys import EphemeralKey, RunContext
from vfedsec.crypto.masking import Scratch
from vfedsec.crypto.pairs import Pair
from vfedsec.protocol.messages import Share, UpdateShare, decode_reply
from vfedsec.protocol.secure_layer import GroupBlinds, SecureLayer
from vfedsec.protocol.session import parse

DEGREES = 255
# Wilson and Hilferty's approximation of the quantile at 1 - 1e-7.
LIMIT = DEGREES * (1 - 2 / (9 * DEGREES) + 5.2 * (2 / (9 * DEGREES)) ** 0.5) ** 3
RUN = RunContext(b"run", 0)
ARRAYS = 96

INPUTS = {
    "zeros": lambda number: np.zeros((64, 8), np.float32),
    "a constant": lambda number: np.full((64, 8), 1.25, np.float32),
    "the largest": lambda number: np.full((64, 8), 4.0, np.float32),
    "far too large": lambda number: np.full((64, 8), -1e6, np.float32),
    "like embeddings": lambda number: np.random.default_rng(number).normal(size=(64, 8)).astype(np.float32),
}
EVERY_INPUT = pytest.mark.parametrize("values", INPUTS.values(), ids=INPUTS)
EVERY_RING = pytest.mark.parametrize("word_bits", [16, 32])


def chi_square(arrays):
    """The worst over the bytes of a word."""
    words = np.concatenate([np.ascontiguousarray(array).reshape(-1) for array in arrays])
    columns = words.view(np.uint8).reshape(-1, words.itemsize)
    expected = len(words) / 256
    counts = [np.bincount(column, minlength=256) for column in columns.T]
    return max(((count - expected) ** 2 / expected).sum() for count in counts)


def differences(arrays):
    """Of neighbours: a mask used twice would cancel in them."""
    return [later - earlier for earlier, later in pairwise(arrays)]


def assert_random(arrays):
    assert chi_square(arrays) < LIMIT
    assert chi_square(differences(arrays)) < LIMIT


def assert_not_random(arrays):
    """By far: the least of these inputs' statistics is a thousand times the limit."""
    assert chi_square(arrays) > 20 * LIMIT


def pair_of(entropy, own="p", partner="q"):
    key, other = EphemeralKey(entropy(32), 0), EphemeralKey(entropy(32), 0)
    return Pair(RUN, (own, key), (partner, other.public), Scratch())


def layer_of(mode="secure", word_bits=32):
    return SecureLayer(job_of(mode=mode, word_bits=word_bits), b"seed", float)


def shares(values, word_bits, *, mode="secure", fresh=True):
    """The same party's share of one array after the other, under fresh keys or in later rounds."""
    layer, entropy = layer_of(mode, word_bits), Drbg("shares")
    pair = pair_of(entropy)
    result = []
    for number in range(ARRAYS):
        pair = pair_of(entropy) if fresh else pair
        result.append(layer.share(values(number), number + 1, 0, [pair]).copy())
    return result


@EVERY_INPUT
@EVERY_RING
@pytest.mark.parametrize("fresh", [True, False], ids=["under fresh keys", "round by round"])
def test_masked_embeddings_look_random(values, word_bits, fresh):
    assert_random(shares(values, word_bits, fresh=fresh))


@EVERY_INPUT
@EVERY_RING
def test_bare_embeddings_do_not(values, word_bits):
    assert_not_random(shares(values, word_bits, mode="insecure-integers"))


def updates(values, *, mode="secure", own_blind=True, members=("a", "b", "c")):
    """Each member's blinded gradient and their sum, in one round after the other."""
    layer, entropy = layer_of(mode), Drbg("updates")
    keys = {name: EphemeralKey(entropy(32), 0) for name in members}
    pairs = {
        name: [
            Pair(RUN, (name, keys[name]), (other, keys[other].public), Scratch()) for other in members if other != name
        ]
        for name in members
    }
    blinds = GroupBlinds(entropy(32), RUN, "group", Scratch())
    given, sums = [], []
    for number in range(ARRAYS):
        words = []
        for name in members:
            array = values(number).reshape(-1)
            words.append(layer.blind(array, number + 1, pairs[name], blinds.of(name, b"key")).copy())
            if not own_blind:
                blinds.of(name, b"key").combine(words[-1], number + 1, 0, add=False)
        given.append(words[0])
        sums.append(layer.formats.update.add(words))
    return given, sums


@EVERY_INPUT
def test_blinded_updates_look_random(values):
    given, _ = updates(values)
    assert_random(given)


@EVERY_INPUT
def test_the_sum_of_blinded_updates_looks_random_to_the_aggregator(values):
    _, sums = updates(values)
    assert_random(sums)


@EVERY_INPUT
def test_the_update_of_a_member_that_is_alone_looks_random(values):
    given, sums = updates(values, members=("a",))
    assert_random(given)
    assert_random(sums)


@EVERY_INPUT
def test_without_the_groups_own_mask_the_sum_does_not(values):
    """The pairs' masks alone cancel in it: this is the paper's own variant."""
    given, sums = updates(values, own_blind=False)
    assert_random(given)
    assert_not_random(sums)


@EVERY_INPUT
def test_bare_updates_do_not(values):
    given, sums = updates(values, mode="insecure-integers")
    assert_not_random(given)
    assert_not_random(sums)


# -- the same of what goes over the wire in a run --


def words_on_the_wire(job):
    """Every share of an embedding and of an update that the aggregator gets."""
    federation = Federation(job)
    federation.simulation.train()
    embeddings, sent = [], []
    for heard in federation.heard:
        if heard.exchange.kind in ("hello", "mail", "prepare", "finish"):
            continue
        message = decode_reply(parse(heard.reply).body)
        if isinstance(message, Share):
            embeddings += [np.frombuffer(raw, f"<u{job.security.word_bits // 8}") for raw in message.slices.values()]
        if isinstance(message, UpdateShare):
            sent.append(np.frombuffer(message.words, "<u4"))
    return embeddings, sent


@EVERY_RING
def test_everything_masked_that_the_aggregator_gets_in_a_run_looks_random(word_bits):
    embeddings, sent = words_on_the_wire(job_of((2, 1), word_bits=word_bits, rounds=150, width=8))
    assert chi_square(embeddings) < LIMIT
    assert chi_square(sent) < LIMIT


def test_in_a_run_without_masks_it_does_not():
    embeddings, sent = words_on_the_wire(job_of((2, 1), mode="insecure-integers", rounds=150, width=8))
    assert chi_square(embeddings) > 20 * LIMIT
    assert chi_square(sent) > 20 * LIMIT


def test_uniform_words_pass_and_a_slight_lean_does_not():
    words = Drbg("uniform").array((65536,))
    assert chi_square([words]) < LIMIT
    words[::16] |= np.uint32(1)
    assert chi_square([words]) > LIMIT
