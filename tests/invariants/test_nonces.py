"""No (key, nonce) pair is used twice for different arrays, in any interleaving of drops, repeats and restarts.

A hypothesis machine drives a small federation, one exchange after the other. Every mask and every seal is written into
a ledger on the way; the oracle of sums runs beside it, and when the faults stop, training must go on.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from federation import ACTIVE, Federation, job_of
from vfedsec.crypto import envelope, masking
from vfedsec.engines.faults import Fault
from vfedsec.protocol import session

EVERYBODY = (ACTIVE, "a0", "a1", "b0")
GROUP = ("a0", "a1")
PARTIES = st.sampled_from(EVERYBODY)
AESGCM, MASK_STREAM = envelope.AESGCM, masking.MaskStream


class Ledger:
    """What was masked or sealed under each key and nonce, and by whom."""

    def __init__(self):
        self.speaker = "aggregator"
        self.entries = {}
        self.counts = {"mask": 0, "seal": 0}

    def write(self, kind, owner, key, nonce, *content):
        """Raises `AssertionError` if the pair has served something else before."""
        digest = hashlib.sha256(b"|".join(bytes(part) for part in content)).digest()
        entry = (kind, owner, key, nonce)
        assert self.entries.setdefault(entry, digest) == digest, f"{kind} of {owner}: nonce {nonce!r} used twice"
        self.counts[kind] += 1

    def listen(self, federation):
        """Know which party is at work, so that the two sides of a mask are two entries."""
        for party in federation.parties.values():
            self.listen_to(party)

    def listen_to(self, party):
        """Again after a restart: to the same name, since the party is the same."""
        handle = party.handle

        def heard(request):
            self.speaker = party.name
            try:
                return handle(request)
            finally:
                self.speaker = "aggregator"

        party.handle = heard


def instrument(patch, ledger):
    """Have every mask and every seal written down."""

    class RecordingSeal:
        def __init__(self, key):
            self.key, self.cipher = bytes(key), AESGCM(key)

        def encrypt(self, nonce, data, associated):
            # Whoever seals: a key of one direction has one sender, so a nonce serves once in all.
            ledger.write("seal", "", self.key, bytes(nonce), data, associated)
            return self.cipher.encrypt(nonce, data, associated)

        def decrypt(self, nonce, data, associated):
            return self.cipher.decrypt(nonce, data, associated)

    def init(self, key, *args, **kwargs):
        self.test_key = bytes(key)
        original_init(self, key, *args, **kwargs)

    def combine(self, words, round_index, slice_index, *, add):
        if self.test_is_masking:
            # The ring's width is left out: a stream that masks both kinds of words would be caught too.
            nonce = masking.nonce_of(round_index, slice_index)
            ledger.write("mask", ledger.speaker, self.test_key, nonce, words)
        original_combine(self, words, round_index, slice_index, add=add)

    def mask(self, *args, **kwargs):
        self.test_is_masking = True
        try:
            original_mask(self, *args, **kwargs)
        finally:
            self.test_is_masking = False

    original_init, original_combine, original_mask = MASK_STREAM.__init__, MASK_STREAM.combine, MASK_STREAM.mask
    patch.setattr(MASK_STREAM, "test_is_masking", False, raising=False)
    patch.setattr(MASK_STREAM, "__init__", init)
    patch.setattr(MASK_STREAM, "combine", combine)
    patch.setattr(MASK_STREAM, "mask", mask)
    patch.setattr(envelope, "AESGCM", RecordingSeal)
    patch.setattr(session, "AESGCM", RecordingSeal)


class Interleavings(RuleBasedStateMachine):
    """One exchange after the other, with anything that can happen to it."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.ledger = Ledger()
        instrument(self.patch, self.ledger)

    def teardown(self):
        self.patch.undo()

    @initialize(
        policy=st.sampled_from(["pad", "pad", "discard"]),
        fusion=st.sampled_from(["concat", "concat", "sum"]),
        rekey_every=st.sampled_from([1, 2, 3, 100]),
    )
    def begin(self, policy, fusion, rekey_every):
        job = job_of((2, 1), policy=policy, fusion=fusion, rekey_every=rekey_every, rounds=5000, deadline=0.01)
        self.federation = Federation(job, seed="machine")
        self.ledger.listen(self.federation)
        self.federation.start()
        self.old = {party: [] for party in EVERYBODY}

    @rule(count=st.integers(1, 4))
    def go_on(self, count):
        for _ in range(count):
            for party, data in self.federation.next_exchange.requests.items():
                self.old[party].append(data)
            self.federation.step()

    @rule(party=PARTIES, fault=st.sampled_from([Fault.BEFORE, Fault.MIDDLE, Fault.GONE]), times=st.integers(1, 3))
    def lose(self, party, fault, times):
        self.federation.script.lose(party, fault, times=times)

    @rule(parties=st.sets(PARTIES, min_size=2), fault=st.sampled_from([Fault.BEFORE, Fault.MIDDLE, Fault.GONE]))
    def lose_several(self, parties, fault):
        for party in parties:
            self.federation.script.lose(party, fault)

    @rule(party=PARTIES)
    def repeat_a_request(self, party):
        self.federation.script.requests[party] = lambda data: [data, data, data]

    @rule(party=PARTIES, back=st.integers(1, 12))
    def replay_an_old_request(self, party, back):
        old = self.old[party][-back:][:1]
        self.federation.script.requests[party] = lambda data: [*old, data]

    @rule(party=PARTIES, back=st.integers(1, 4))
    def swap_requests(self, party, back):
        """The new one overtakes the old one."""
        old = self.old[party][-back:][:1]
        self.federation.script.requests[party] = lambda data: [data, *old]

    @rule(party=st.sampled_from([ACTIVE, "b0"]))
    def restart(self, party):
        self.ledger.listen_to(self.federation.restart(party))

    @precondition(lambda self: all(self.federation.parties[name].model_round >= 0 for name in GROUP))
    @rule(party=st.sampled_from(GROUP))
    def restart_a_member(self, party):
        """Never the last one that has the group's model: with it the model would be gone."""
        self.ledger.listen_to(self.federation.restart(party))

    @precondition(lambda self: any(self.federation.parties[name].model_round < 0 for name in GROUP))
    @rule()
    def restart_a_member_again(self):
        name = next(name for name in GROUP if self.federation.parties[name].model_round < 0)
        self.ledger.listen_to(self.federation.restart(name))

    @rule()
    def recover(self):
        """Once the faults stop, a round with everybody present comes soon, and replicas are one again."""
        federation = self.federation
        federation.script.clear()
        before = len(federation.rounds())
        for _ in range(40):
            federation.step()
            if "trained" in federation.outcomes()[before:]:
                break
        else:
            raise AssertionError(f"no round with everybody: {federation.events[-12:]}")
        federation.step_to("train")
        federation.step()
        states = {federation.parties[name].model.dump() for name in GROUP}
        assert len(states) == 1

    @invariant()
    def losses_are_numbers(self):
        if hasattr(self, "federation"):
            losses = [event.loss for event in self.federation.rounds() if event.loss is not None]
            assert np.isfinite(losses).all()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=2 * settings().max_examples, stateful_step_count=25, deadline=None)


# -- the ledger itself --


@pytest.fixture
def ledger(monkeypatch):
    ledger = Ledger()
    instrument(monkeypatch, ledger)
    return ledger


def test_a_quiet_run_writes_every_mask_and_seal_into_the_ledger(ledger):
    federation = Federation(job_of((2, 1), rounds=10))
    ledger.listen(federation)
    federation.simulation.train()
    rounds = len(federation.rounds()) + len(federation.rounds("test")) + len(federation.rounds("validation"))
    # A round: the active party masks with 3, each member with 2, the lone party with 1; a member's update: 2 masks.
    assert ledger.counts["mask"] == rounds * (3 + 2 + 2 + 1) + 10 * 2 * 2
    assert ledger.counts["seal"] > 2 * 4 * rounds


def test_the_ledger_notices_a_mask_that_is_used_twice(ledger):
    stream = masking.MaskStream(bytes(32), masking.Scratch())
    stream.mask(np.zeros(4, np.uint32), 1, 0, add=True)
    stream.last_round = -1
    stream.mask(np.zeros(4, np.uint32), 1, 0, add=True)  # the same array again gives nothing away
    stream.last_round = -1
    with pytest.raises(AssertionError, match="used twice"):
        stream.mask(np.ones(4, np.uint32), 1, 0, add=True)


def test_the_ledger_notices_a_seal_that_is_used_twice(ledger):
    seal = envelope.Seal(bytes(32), "p", "q", "envelope")
    seal.seal(1, b"rows")
    seal.last_number = -1
    with pytest.raises(AssertionError, match="used twice"):
        seal.seal(1, b"other rows")


def test_two_sides_of_a_pair_are_two_entries(ledger):
    for speaker, value in (("p", 0), ("q", 1)):
        ledger.speaker = speaker
        stream = masking.MaskStream(bytes(32), masking.Scratch())
        stream.mask(np.full(4, value, np.uint32), 1, 0, add=True)
    assert ledger.counts["mask"] == 2
