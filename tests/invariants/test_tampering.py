"""Any flipped bit in an envelope, key, signature, greeting or message is an error, never a wrong number."""

import os
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deputy import Deputy
from federation import ACTIVE, Federation, Script, job_of
from vfedsec import trace
from vfedsec.engines.faults import Faults
from vfedsec.errors import CryptoError, ProtocolError, VFedSecError
from vfedsec.protocol import messages as m

ERRORS = (ProtocolError, CryptoError)
STEP = 23 if os.environ.get("FAST") else 1


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def forgeries(data):
    """Every flipped bit, every shorter frame at some lengths, and longer ones."""
    yield from (flipped(data, bit) for bit in range(0, 8 * len(data), STEP))
    yield from (data[:length] for length in range(0, len(data), 7))
    yield from (data + b"\0", b"\0" + data, data + data, b"")


class Tamperer(Script):
    """Gives everybody every forgery of a frame before the frame itself, where `chosen` says so.

    What is a forgery and is taken for real is counted, and the number must stay 0.
    """

    def __init__(self, chosen):
        super().__init__()
        self.chosen = chosen
        self.federation = None
        self.taken, self.refused = [], 0

    def request(self, exchange, party, data):
        if self.chosen(exchange):
            for forged in forgeries(data):
                self._try(exchange, party, lambda f=forged: self.federation.parties[party].handle(f))
        return [data]

    def reply(self, exchange, party, data):
        if self.chosen(exchange):
            for forged in forgeries(data):
                self._try(exchange, party, lambda f=forged: self._read(exchange, party, f))
        return data

    def _read(self, exchange, party, data):
        board = self.federation.simulation.aggregator._board
        if exchange.kind == "hello":
            return board.welcome(party, data)
        return board.read(party, data, m.Reply)

    def _try(self, exchange, party, believe):
        try:
            believe()
        except ERRORS:
            self.refused += 1
        else:
            self.taken.append((exchange.kind, party))


def run(job, faults=None):
    federation = Federation(job, seed="keys", faults=faults)
    if faults:
        faults.federation = federation
    federation.simulation.train()
    federation.simulation.finish()
    return federation


@pytest.mark.parametrize("kind", ["hello", "mail", "prepare", "plan", "train", "update", "test", "finish"])
def test_every_forgery_of_every_frame_is_refused_and_everybody_goes_on_working(kind):
    """The first exchange of each kind, in both directions; the weights are those of an untouched run."""
    job = job_of((2,), rounds=3, batch_size=8, width=2)
    first = []

    def chosen(exchange):
        if exchange.kind == kind and not first:
            first.append(exchange.number)
        return [exchange.number] == first

    tamperer = Tamperer(chosen)
    federation = run(job, tamperer)
    assert tamperer.taken == []
    assert tamperer.refused > 1000 / STEP
    assert federation.weights() == run(job).weights()


def test_the_tamperer_notices_a_frame_that_is_believed(monkeypatch):
    monkeypatch.setattr("vfedsec.protocol.session.Channel.check", lambda self, frame: None)
    tamperer = Tamperer(lambda exchange: exchange.kind == "update" and exchange.number < 12)
    with suppress(VFedSecError):
        run(job_of((2,), rounds=2, batch_size=8, width=2), tamperer)
    assert tamperer.taken


@given(st.data())
def test_any_flipped_bit_in_what_an_honest_aggregator_carries_is_refused(data):
    """Envelopes, letters, announcements and donations inside requests that are authentic themselves."""
    deputy = Deputy(Federation(job_of(), watched=False))
    deputy.build()
    deputy.make_envelopes()
    name = data.draw(st.sampled_from(["a0", "b0"]))
    envelope = deputy.envelopes[name]
    field = data.draw(st.sampled_from(["round_index", "sender_key_id", "receiver_key_id", "sealed"]))
    deputy.envelopes[name] = with_flipped_bit(data, envelope, field)
    with pytest.raises(ERRORS):
        deputy.ask(name, deputy.round_for(name))
    deputy.make_envelopes()
    assert deputy.ask(name, deputy.round_for(name)).round_index == deputy.round_index


def with_flipped_bit(data, struct, field):
    value = getattr(struct, field)
    if isinstance(value, int):
        return msgspec.structs.replace(struct, **{field: value ^ 1 << data.draw(st.integers(0, 40))})
    changed = flipped(value, data.draw(st.integers(0, 8 * len(value) - 1)))
    return msgspec.structs.replace(struct, **{field: memoryview(changed) if isinstance(value, memoryview) else changed})


@given(st.data())
def test_any_flipped_bit_in_a_carried_key_is_refused(data):
    deputy = Deputy(Federation(job_of(rekey_every=2), watched=False))
    deputy.build()
    while True:
        share = deputy.forward(ACTIVE, "a0", "a1", "b0")["b0"]
        if share.announcement is not None:
            break
    field = data.draw(st.sampled_from(["public_key", "signature", "issued_round"]))
    forged = with_flipped_bit(data, share.announcement, field)
    deputy.make_envelopes()
    with pytest.raises(ERRORS):  # a date of issue that lies too early is refused before the signature is read
        deputy.ask(ACTIVE, deputy.round_for(ACTIVE, announcements=[forged]))
    assert deputy.party(ACTIVE)._keys.latest_of("b0") != forged.key_id


@given(st.data())
def test_any_flipped_bit_in_a_group_secret_on_its_way_is_refused(data):
    deputy = Deputy(Federation(job_of((3,)), watched=False))
    deputy.greet(*deputy.roles.parties)
    letters = deputy.ask("a0", m.Deliver([], deputy.news("a0"))).letters
    letter = next(letter for letter in letters if letter.receiver == "a1")
    field = data.draw(st.sampled_from(["number", "sender_key_id", "receiver_key_id", "sealed"]))
    with pytest.raises(ERRORS):
        deputy.ask("a1", m.Deliver([with_flipped_bit(data, letter, field)], deputy.news("a1")))
    assert deputy.party("a1")._group_secret == b""


def test_a_changed_donation_is_refused_and_the_next_one_taken():
    """What a peer sends to a member that came back cannot be changed by who carries it."""
    federation = Federation(job_of(rounds=90))
    federation.start()
    federation.train_rounds(2)
    federation.restart("a1")
    party, donations = federation.parties["a1"], federation.simulation.aggregator._outgoing._replicas.donations
    for bit in (0, 400, 900):
        while "a1" not in donations:
            federation.step()
        (letter, model_round), before = donations["a1"], party.model.dump()
        forged = msgspec.structs.replace(letter, sealed=memoryview(flipped(letter.sealed, bit)))
        donations["a1"] = (forged, model_round)
        refused = len(federation.of_type(trace.PartyLost))
        federation.step_to("train")
        federation.step()
        assert len(federation.of_type(trace.PartyLost)) > refused
        assert party.model.dump() == before
    federation.train_rounds(8)
    assert party.model_round > 0
    assert party.model.dump() == federation.parties["a0"].model.dump()


class RandomTampering(Faults):
    """One frame in eight arrives with a bit flipped, cut or twice as long, in either direction."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.changed = 0

    def request(self, exchange, party, data):
        return [self._changed(data)]

    def reply(self, exchange, party, data):
        return self._changed(data)

    def _changed(self, data):
        if self.random.random() > 1 / 8:
            return data
        self.changed += 1
        match self.random.integers(4):
            case 0:
                return data[: self.random.integers(len(data))]
            case 1:
                return data + data
            case _:
                return flipped(data, int(self.random.integers(8 * len(data))))


@pytest.mark.parametrize("policy", ["pad", "discard"])
@pytest.mark.parametrize("seed", range(3))
def test_a_run_under_random_tampering_ends_with_every_sum_right(policy, seed):
    faults = RandomTampering(seed)
    federation = run(job_of(policy=policy, rounds=60, rekey_every=3), faults)
    assert faults.changed > 30
    assert federation.of_type(trace.PartyLost)
    assert federation.oracle.joined > 20
    assert federation.simulation.aggregator.tally.trained > 5
    for event in federation.rounds():
        assert event.loss is None or np.isfinite(event.loss)
