"""Two runs with the same keys but different inputs give the aggregator transcripts that differ only in the sums."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import Federation, features_of, job_of, partner_rows
from vfedsec.crypto.masking import MaskStream, Scratch
from vfedsec.protocol import session
from vfedsec.protocol.messages import Share, UpdateShare, Welcome, decode_reply, decode_request

ROWS = 160
LENGTH_ONLY = ("sealed",)


def run(job, features, scale=1.0):
    """A whole run; `features` seeds what the parties' columns hold."""
    rows = features_of(job, partner_rows(job, ROWS), rows=ROWS, columns=3, seed=features)
    for kept in rows.values():
        kept.features[:] *= scale
    federation = Federation(job, rows, seed="keys")
    federation.simulation.train()
    federation.simulation.finish()
    return federation


def stripped(value, words=()):
    """A message with the bytes of what is sealed, and of the fields named, replaced by how many there are."""
    if isinstance(value, msgspec.Struct):
        fields = {}
        for name in value.__struct_fields__:
            field = getattr(value, name)
            fields[name] = lengths(field) if name in (*words, *LENGTH_ONLY) else stripped(field, words)
        return type(value).__name__, fields
    if isinstance(value, dict):
        return {key: stripped(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [stripped(item, words) for item in value]
    return bytes(value) if isinstance(value, memoryview) else value


def lengths(field):
    if isinstance(field, dict):
        return {key: len(item) for key, item in field.items()}
    return None if field is None else len(field)


def replies(federation):
    """What the aggregator hears: who, when, how long, and all but masked words and sealed bytes."""
    for heard in federation.heard:
        frame = session.parse(heard.reply)
        message = decode_reply(frame.body)
        yield (
            (heard.exchange.number, heard.exchange.kind, heard.party),
            (len(heard.reply), frame.kind, frame.exchange),
            stripped(message, ("slices", "words")),
        )


def requests(federation):
    """What the aggregator says: its gradients and its sums are all that depends on what it heard."""
    for heard in federation.heard:
        frame = session.parse(heard.request)
        message = decode_request(frame.body)
        yield len(heard.request), frame.exchange, message


def shares(federation):
    for heard in federation.heard:
        message = decode_reply(session.parse(heard.reply).body)
        if isinstance(message, Share | UpdateShare):
            yield heard.party, message


JOBS = pytest.mark.parametrize(
    "options",
    [{}, {"fusion": "sum"}, {"word_bits": 16}, {"groups": (3,)}, {"rekey_every": 2}],
    ids=lambda options: ",".join(options) or "default",
)


@JOBS
def test_replies_differ_in_masked_words_and_sealed_bytes_only(options):
    job = job_of(**options)
    one, two = run(job, 1), run(job, 2)
    assert list(replies(one)) == list(replies(two))
    assert one.weights() != two.weights()


def test_nothing_tells_how_large_the_inputs_are():
    """Values a thousand times too large are clipped: not even how many is told."""
    job = job_of()
    assert list(replies(run(job, 1))) == list(replies(run(job, 1, scale=1000.0)))


@JOBS
def test_requests_differ_in_gradients_sums_and_sealed_bytes_only(options):
    job = job_of(**options)
    one, two = run(job, 1), run(job, 2)
    for (length, number, first), (other_length, other_number, second) in zip(requests(one), requests(two), strict=True):
        assert (length, number) == (other_length, other_number)
        assert stripped(first, ("gradient", "words")) == stripped(second, ("gradient", "words"))


def test_the_same_inputs_and_keys_give_the_same_transcript_byte_for_byte():
    """So whatever differs above comes from the inputs."""
    job = job_of()
    one, two = ([(heard.request, heard.reply) for heard in run(job, 1).heard] for _ in range(2))
    assert one == two


def test_the_masks_of_both_runs_are_the_same_so_shares_differ_by_the_inputs_alone():
    """The difference of two shares under one mask is that of the bare words: no other key, no other noise."""
    job = job_of(rounds=1)
    one, two = run(job, 1), run(job, 2)
    for (party, first), (_, second) in zip(shares(one), shares(two), strict=True):
        if isinstance(first, Share) and first.round_index == 2:
            for index in first.slices:
                words = [np.frombuffer(share.slices[index], "<u4") for share in (first, second)]
                bare = [f.oracle.first[party, 2, index].reshape(-1) for f in (one, two)]
                assert np.array_equal(words[1] - words[0], bare[1] - bare[0])


class Stream:
    """A keystream that is whatever a test says."""

    def __init__(self, key):
        self.key = key

    def fill(self, nonce, zeros, buffer):
        buffer[: len(self.key)] = self.key


def masked(words, mask, *, add):
    result = words.copy()
    MaskStream(mask.tobytes(), Scratch(), Stream).mask(result, 1, 0, add=add)
    return result


@given(st.data(), st.sampled_from([np.uint16, np.uint32]), st.integers(2, 5))
def test_inputs_with_equal_sums_have_masks_under_which_the_shares_are_the_same_bytes(data, ring, parties):
    """The simulator's argument: one party's words move by d and another's by -d, and so do their masks, backwards.

    Masks are uniform, so both transcripts are equally likely: the aggregator cannot tell which it has.
    """
    size, top = 6, np.iinfo(ring).max
    array = st.lists(st.integers(0, top), min_size=size, max_size=size).map(lambda items: np.array(items, ring))
    words = [data.draw(array) for _ in range(parties)]
    first, second = data.draw(st.permutations(range(parties)).map(lambda order: order[:2]))
    shift = data.draw(array)
    others = [word.copy() for word in words]
    others[first] += shift
    others[second] -= shift
    assert np.array_equal(np.add.reduce(words, dtype=ring), np.add.reduce(others, dtype=ring))

    masks = {(u, v): data.draw(array) for v in range(parties) for u in range(v + 1, parties)}
    moved = dict(masks)
    ends = (max(first, second), min(first, second))
    moved[ends] = masks[ends] - shift if ends[0] == first else masks[ends] + shift

    def transcript(inputs, pads):
        result = []
        for u in range(parties):
            share = inputs[u]
            for v in range(parties):
                if u != v:
                    share = masked(share, pads[max(u, v), min(u, v)], add=u > v)
            result.append(share.tobytes())
        return result

    assert transcript(words, masks) == transcript(others, moved)


def test_a_welcome_tells_a_key_a_round_and_a_version_and_no_more():
    assert Welcome.__struct_fields__ == ("announcement", "model_round", "version")
