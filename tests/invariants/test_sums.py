"""The unmasked sum equals the plain integer sum bit for bit, for every roster, ring and fusion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import Drbg, Federation, job_of, trained
from vfedsec.config.job import Job
from vfedsec.crypto.keys import EphemeralKey, RunContext
from vfedsec.crypto.masking import Scratch
from vfedsec.crypto.pairs import Pair
from vfedsec.engines.faults import Fault
from vfedsec.protocol.fusion import Fusion
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import GroupBlinds, SecureLayer

GROUPS = st.sampled_from([(1,), (2,), (1, 1), (2, 1), (3, 1), (1, 1, 1), (2, 2)])
FUSIONS, RINGS = st.sampled_from(["concat", "sum"]), st.sampled_from([16, 32])


def layers_of(job: Job, names):
    return {name: SecureLayer(job, name.encode(), float) for name in names}


def all_pairs(names):
    """Of each party the pairs with all others."""
    entropy, scratch = Drbg("pairs"), Scratch()
    keys = {name: EphemeralKey(entropy(32), 0) for name in names}
    run = RunContext(b"run", 0)
    return {
        name: {
            other: Pair(run, (name, keys[name]), (other, keys[other].public), scratch)
            for other in names
            if other != name
        }
        for name in names
    }


def plain_sum(arrays):
    """By 64-bit integers, then brought into the ring."""
    bits = 8 * arrays[0].itemsize
    total = np.sum([array.astype(np.uint64) for array in arrays], axis=0, dtype=np.uint64)
    return (total % np.uint64(2**bits)).astype(arrays[0].dtype)


@given(GROUPS, FUSIONS, RINGS, st.data())
def test_masked_shares_of_any_roster_add_up_to_the_bare_sum(groups, fusion, word_bits, data):
    job = job_of(groups, fusion=fusion, word_bits=word_bits)
    roles = Roles(job)
    roster = data.draw(st.lists(st.sampled_from(roles.passive), min_size=1, unique=True))
    scale = data.draw(st.sampled_from([0.0, 1e-6, 1.0, 100.0]))
    round_index = data.draw(st.integers(1, 2**40))
    random = np.random.default_rng(len(roster))
    masking, bare = (
        layers_of(j, roles.parties)
        for j in (job, job_of(groups, fusion=fusion, word_bits=word_bits, mode="insecure-integers"))
    )
    pairs = all_pairs(roles.parties)

    shares, words, sets = {}, {}, {}
    for index in range(len(roles.slices)):
        present = [party for party in roles.sharing(index) if party in roster]
        if not present:
            continue
        sets[index] = frozenset({roles.active, *present})
        for party in sets[index]:
            values = (random.normal(size=(16, roles.slice_width(index))) * scale).astype(np.float32)
            values[random.random(16) < 0.3] = 0  # rows that the party does not hold
            partners = [pairs[party][other] for other in sets[index] if other != party]
            shares.setdefault(party, {})[index] = masking[party].share(values, round_index, index, partners).reshape(-1)
            words[party, index] = bare[party].share(values, round_index, index, partners).reshape(-1)

    numbers = masking[roles.active].formats.embedding
    embedding, found = Fusion(roles, numbers).join(shares, sets)
    for index, columns in enumerate(roles.slices):
        assert found[index] == (index in sets)
        if found[index]:
            members = sorted(sets[index])
            total = plain_sum([words[party, index] for party in members])
            assert np.array_equal(plain_sum([shares[party][index] for party in members]), total)
            assert np.array_equal(embedding[:, columns].reshape(-1), numbers.values(total))
        else:
            assert not embedding[:, columns].any()


@given(st.integers(1, 5), st.sampled_from([0.0, 1e-6, 1.0, 100.0]), st.integers(1, 2**40))
def test_a_groups_blinded_updates_add_up_to_the_bare_sum(members, scale, round_index):
    job = job_of((max(members, 2), 1))
    names = [f"a{index}" for index in range(members)]
    masking, bare = layers_of(job, names), layers_of(job_of((max(members, 2), 1), mode="insecure-integers"), names)
    pairs = all_pairs(names)
    random = np.random.default_rng(members)
    blinds = {name: GroupBlinds(b"secret", RunContext(b"run", 0), "group-a", Scratch()) for name in names}
    shares, words = [], []
    for name in names:
        gradient = (random.normal(size=37) * scale).astype(np.float32)
        own = blinds[name].of(name, b"key")
        shares.append(masking[name].blind(gradient, round_index, pairs[name].values(), own))
        words.append(bare[name].blind(gradient, round_index, pairs[name].values(), own))
    total, expected = plain_sum(shares), plain_sum(words)
    assert not np.array_equal(total, expected)
    for name in names:
        added = [blinds[name].of(member, b"key") for member in names]
        found = masking[name].unblind(memoryview(total.tobytes()), 37, round_index, added)
        assert np.array_equal(found, masking[name].formats.update.values(expected))


@pytest.mark.parametrize("word_bits", [16, 32])
@pytest.mark.parametrize("fusion", ["concat", "sum"])
@pytest.mark.parametrize("groups", [(1,), (1, 1, 1), (3,), (2, 1), (2, 2)], ids=str)
def test_every_sum_of_a_run_is_right(groups, fusion, word_bits):
    federation = trained(job_of(groups, fusion=fusion, word_bits=word_bits, rekey_every=3))
    slices = 1 if fusion == "sum" else len(groups)
    assert federation.oracle.joined >= 12 * slices
    assert federation.oracle.applied >= 11 * sum(size for size in groups if size > 1)
    assert federation.outcomes() == ["trained"] * 12


@pytest.mark.parametrize("policy", ["pad", "discard"])
@pytest.mark.parametrize("fusion", ["concat", "sum"])
@pytest.mark.parametrize("word_bits", [16, 32])
def test_every_sum_of_a_run_with_dropouts_is_right(policy, fusion, word_bits):
    job = job_of((3, 1), policy=policy, fusion=fusion, word_bits=word_bits, rekey_every=3, drop=0.5, rounds=60)
    federation = trained(job)
    assert {"trained"} < set(federation.outcomes())
    assert federation.oracle.joined > 40
    assert federation.oracle.applied > 30


@given(
    st.lists(st.tuples(st.sampled_from(["active", "a0", "a1", "b0"]), st.sampled_from(list(Fault)[1:])), max_size=12)
)
def test_every_sum_is_right_whoever_is_lost_when(losses):
    """Losses are spread over the exchanges of a run, several at once where the same exchange has them."""
    federation = Federation(job_of((2, 1), rounds=10, rekey_every=2))
    federation.start()
    for index, (party, fault) in enumerate(losses):
        federation.script.lose(party, fault)
        if index % 2:
            federation.step()
    while federation.step():
        pass
    assert len(federation.rounds()) >= 10
    assert federation.oracle.joined


def test_the_oracle_notices_a_wrong_sum():
    federation = Federation(job_of())
    party = federation.parties["a0"]
    share = party.secure.share

    def off_by_one(*args):
        words = share(*args)
        words[0, 0] += 1
        return words

    party.secure.share = off_by_one
    with pytest.raises(AssertionError, match="wrong sum in slice 0"):
        federation.simulation.train()


def test_the_oracle_notices_a_wrong_update():
    federation = Federation(job_of())
    party = federation.parties["a0"]
    blind = party.secure.blind

    def off_by_one(*args):
        words = blind(*args)
        words[0] += 1
        return words

    party.secure.blind = off_by_one
    with pytest.raises(AssertionError, match="wrong update"):
        federation.simulation.train()
