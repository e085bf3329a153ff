"""What passive parties do for their group."""

import msgspec
import numpy as np
import pytest

from deputy import EVERYBODY, Deputy
from federation import ACTIVE, Federation, job_of, rows_of
from vfedsec.config.digest import job_digest
from vfedsec.config.job import AGGREGATOR
from vfedsec.crypto.keys import EphemeralKey
from vfedsec.errors import CryptoError, LocalProtocolError, OpenFailed, RemoteProtocolError
from vfedsec.protocol import session
from vfedsec.protocol.messages import Batch, BlindSum, Finish, Hello, Letter, Member
from vfedsec.protocol.states import PartyState


@pytest.fixture
def forwarded(built):
    built.forward(*EVERYBODY)
    return built


def gradient(deputy, name, value=0.1):
    return np.full(len(deputy.gradient(name)) // 4, value, "<f4").data.cast("B")


def blinded_sum(deputy, members=("a0", "a1"), **changes):
    """What the aggregator makes of the members' updates."""
    listed = deputy.members(members)
    shares = []
    for name in members:
        request = deputy.update_for(name, members=listed, gradient=gradient(deputy, name))
        shares.append(np.frombuffer(deputy.ask(name, request).words, "<u4"))
    words = memoryview(np.add.reduce(shares, dtype=np.uint32).tobytes())
    fields = {"round_index": deputy.round_index, "base_round": 0, "members": listed, "words": words}
    return BlindSum(**(fields | changes))


def finish(deputy, update):
    return Finish("over", deputy.round_index, updates=[update])


# -- updates --


def test_members_that_take_a_sum_stay_one(forwarded):
    update = blinded_sum(forwarded)
    before = forwarded.party("a0").model.dump()
    for name in ("a0", "a1"):
        forwarded.ask(name, finish(forwarded, update))
        assert forwarded.party(name).model_round == forwarded.round_index
    assert forwarded.party("a0").model.dump() == forwarded.party("a1").model.dump() != before


def test_an_update_of_the_whole_group_is_the_sum_of_what_each_would_do(forwarded):
    seen = {}
    for name in ("a0", "a1"):
        party = forwarded.party(name)
        backward = party.model.backward
        party.model.backward = lambda g, n=name, b=backward: seen.setdefault(n, b(g))
        apply = party.model.apply
        party.model.apply = lambda g, n=name, a=apply: (seen.__setitem__(n + " took", g), a(g))
    update = blinded_sum(forwarded)
    forwarded.ask("a0", finish(forwarded, update))
    assert np.abs(seen["a0 took"] - seen["a0"] - seen["a1"]).max() < 1e-6


@pytest.mark.parametrize("changes", [{"base_round": 1}, {"base_round": -1}])
def test_a_sum_that_continues_from_another_state_is_refused(forwarded, changes):
    update = blinded_sum(forwarded, **changes)
    before = forwarded.party("a0").model.dump()
    with pytest.raises(RemoteProtocolError, match="its model is of round 0"):
        forwarded.ask("a0", finish(forwarded, update))
    assert forwarded.party("a0").model.dump() == before


def test_a_sum_that_was_taken_is_passed_over(forwarded):
    update = blinded_sum(forwarded)
    twice = Finish("over", forwarded.round_index, updates=[update, update])
    forwarded.ask("a0", twice)
    forwarded.ask("a1", finish(forwarded, update))
    assert forwarded.party("a0").model.dump() == forwarded.party("a1").model.dump()


def test_a_sum_with_strangers_is_refused(forwarded):
    update = blinded_sum(forwarded)
    own, peer = update.members
    strange = [Member(name, bytes(8)) for name in ("b0", ACTIVE, "nobody")]
    for members in ([own, strange[0]], strange[1:2], [own, peer, strange[2]], [], [own, own], [peer]):
        with pytest.raises(RemoteProtocolError, match="that its group did not make"):
            forwarded.ask("a0", finish(forwarded, msgspec.structs.replace(update, members=members)))


@pytest.mark.parametrize(
    ("groups", "members"),
    [((2, 1), []), ((2, 1), ["a1", "a1"]), ((2, 1), ["a1", "b0"]), ((3, 1), ["a1"])],
    ids=["nobody's", "with somebody twice", "with a stranger", "one of three"],
)
def test_a_member_that_gave_no_share_takes_no_sum_that_its_group_cannot_have_made(groups, members):
    """Of nobody's sum nothing is unblinded: the aggregator would write the update itself."""
    deputy = Deputy(Federation(job_of(groups), watched=False))
    deputy.build()
    deputy.forward(*deputy.roles.parties)
    party = deputy.party("a0")
    words = memoryview(bytes(4 * party.model.size))
    update = BlindSum(deputy.round_index, 0, deputy.members(members), words)
    before = party.model.dump()
    with pytest.raises(RemoteProtocolError, match="that its group did not make"):
        deputy.ask("a0", finish(deputy, update))
    assert party.model.dump() == before


def test_a_sum_of_another_length_is_refused(forwarded):
    update = blinded_sum(forwarded, words=memoryview(bytes(12)))
    with pytest.raises(RemoteProtocolError, match="expected a share"):
        forwarded.ask("a0", finish(forwarded, update))


def test_a_party_that_is_alone_takes_no_sum(forwarded):
    update = blinded_sum(forwarded)
    with pytest.raises(RemoteProtocolError, match="cannot apply"):
        forwarded.ask("b0", finish(forwarded, msgspec.structs.replace(update, members=[])))


def test_a_member_never_steps_alone(forwarded):
    """Its replica would not be its peers' any more."""
    with pytest.raises(RemoteProtocolError, match="cannot step alone"):
        forwarded.ask("a0", Finish("over", forwarded.round_index, gradient=forwarded.gradient("a0")))


def test_an_update_is_blinded_once_a_round(forwarded):
    forwarded.ask("a0", forwarded.update_for("a0"))
    with pytest.raises(RemoteProtocolError, match="cannot accept 'update'"):
        forwarded.ask("a0", forwarded.update_for("a0", gradient=gradient(forwarded, "a0")))


@pytest.mark.parametrize("shift", [-1, 1, 100])
def test_an_update_is_of_the_last_round_only(forwarded, shift):
    with pytest.raises(RemoteProtocolError, match="cannot update for round"):
        forwarded.ask("a0", forwarded.update_for("a0", round_index=forwarded.round_index + shift))


@pytest.mark.parametrize("members", [["a0", ACTIVE], ["a0", "b0"], ["a1"], [], ["a0", "a0"]], ids=str)
def test_an_update_is_shared_with_the_own_group_only(forwarded, members):
    with pytest.raises((RemoteProtocolError, CryptoError)):
        forwarded.ask("a0", forwarded.update_for("a0", members=forwarded.members(members)))
    assert forwarded.party("a0").state is PartyState.FORWARDED


def test_a_member_that_is_alone_for_a_round_still_blinds(forwarded):
    update = blinded_sum(forwarded, members=("a0",))
    bare = forwarded.party("a0").secure.formats.update.numbers.decode(np.frombuffer(update.words, "<u4"))
    assert np.abs(bare).max() > 10  # gradients here are of a few units
    forwarded.ask("a0", finish(forwarded, update))
    forwarded.ask("a1", finish(forwarded, update))
    assert forwarded.party("a0").model.dump() == forwarded.party("a1").model.dump()


# -- what only the group knows --


def test_members_share_a_secret_that_nobody_else_has(forwarded):
    secrets = {name: forwarded.party(name)._group_secret for name in ("a0", "a1", "b0")}
    assert len(secrets["a0"]) == 32
    assert secrets["a0"] == secrets["a1"]
    assert secrets["b0"] == b""


def test_members_begin_with_the_same_weights_and_lone_parties_with_their_own():
    deputy = Deputy(Federation(job_of((2, 1, 1)), watched=False))
    deputy.build()
    models = {name: deputy.party(name).model.dump() for name in ("a0", "a1", "b0", "c0")}
    assert models["a0"] == models["a1"]
    assert len(set(models.values())) == 3


def test_first_weights_follow_the_secret_seed_of_every_party_and_group():
    """An aggregator that knew a group's could solve the first sums it sees for features."""
    rows, models = rows_of(job_of()), []
    for seed in (1, 2):
        deputy = Deputy(Federation(job_of(seed=seed), rows, watched=False))
        deputy.build()
        models.append({name: deputy.party(name).model.dump() for name in EVERYBODY})
    assert all(models[0][name] != models[1][name] for name in EVERYBODY)


@pytest.mark.parametrize("sender", ["a1", "a2"])
def test_a_group_secret_comes_from_the_first_member_alone(sender):
    deputy = Deputy(Federation(job_of((3,)), watched=False))
    deputy.greet(*deputy.roles.parties)
    deputy.carry_letters()
    receiver = "a2" if sender == "a1" else "a1"
    before = deputy.party(receiver)._group_secret
    letter = deputy.party(sender)._letters.seal(receiver, "group", bytes(64))
    with pytest.raises(RemoteProtocolError, match=f"cannot accept a group secret from {sender}"):
        deputy.party(receiver)._read_letter(letter)
    assert deputy.party(receiver)._group_secret == before


def test_a_member_without_a_secret_builds_no_model():
    deputy = Deputy(Federation(job_of((2,)), watched=False))
    deputy.greet(*deputy.roles.parties)
    with pytest.raises(LocalProtocolError, match="no group secret has come"):
        deputy.party("a1")._build()


def test_a_new_incarnation_has_blinds_of_its_own(forwarded):
    """Whoever was restarted with the aggregator and whoever was not must make the same masks."""
    member = forwarded.party("a0")
    old = member._group_blinds()
    hello = Hello(
        "a0",
        forwarded.board.context.run_id,
        1,
        0,
        job_digest(forwarded.federation.job),
        "0.1.0",
        EphemeralKey(bytes(range(32)), 0).public,
    )
    identity = forwarded.federation.simulation._secrets.identity(AGGREGATOR)
    member.handle(session.sign(identity, 1, hello))
    assert member._group_blinds() is not old
    assert member._group_blinds().context.incarnation == 1
    masks = []
    for blinds in (old, member._group_blinds()):
        words = np.zeros(8, np.uint32)
        blinds.of("a0", b"key").combine(words, 1, 0, add=True)
        masks.append(words.tobytes())
    assert masks[0] != masks[1]


# -- donations --


def donated(deputy, to="a1", by="a0"):
    """A model sealed by one member for another."""
    deputy.make_envelopes()
    share = deputy.ask(by, deputy.round_for(by, donate_to=deputy.members([to])))
    return share.donations[0]


def test_a_model_is_given_to_members_of_the_own_group_only(forwarded):
    forwarded.make_envelopes()
    for members in ([Member("nobody", bytes(8))], forwarded.members([ACTIVE]), forwarded.members(["b0"])):
        with pytest.raises((RemoteProtocolError, CryptoError)):
            forwarded.ask("a0", forwarded.round_for("a0", donate_to=members))
        forwarded.make_envelopes()


def test_a_lone_party_gives_its_model_to_nobody(forwarded):
    forwarded.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="cannot give its model"):
        forwarded.ask("b0", forwarded.round_for("b0", donate_to=forwarded.members([ACTIVE])))


def test_a_model_that_travels_is_sealed(forwarded):
    letter = donated(forwarded)
    state = forwarded.party("a0").model.dump()
    assert forwarded.party("a0")._group_secret not in bytes(letter.sealed)
    assert state[-40:] not in bytes(letter.sealed)
    assert len(letter.sealed) > len(state)


def test_a_model_for_somebody_else_is_not_taken(forwarded):
    letter = donated(forwarded)
    with pytest.raises(RemoteProtocolError, match="cannot accept a letter to 'a1'"):
        forwarded.party("a0")._accept(msgspec.structs.replace(letter, sender="a1"))
    with pytest.raises(RemoteProtocolError, match="cannot take a model"):
        forwarded.party("b0")._accept(letter)
    with pytest.raises((OpenFailed, CryptoError)):
        forwarded.party("a1")._accept(msgspec.structs.replace(letter, purpose="donation", sender="a0", number=99))


@pytest.mark.parametrize("body", [b"", b"\x80", msgspec.msgpack.encode({"model_round": 1})])
def test_a_letter_that_holds_no_model_is_refused(forwarded, body):
    letter = forwarded.party("a0")._letters.seal("a1", "donation", body)
    assert isinstance(letter, Letter)
    with pytest.raises(RemoteProtocolError, match="cannot read the model of a0"):
        forwarded.party("a1")._accept(letter)


def test_a_blind_is_bound_to_the_members_own_key(forwarded):
    """Whoever lost its memory has another key: no round it may have blinded before is blinded alike again."""
    blinds, masks = forwarded.party("a0")._group_blinds(), []
    for key_id in (b"before", b"after"):
        words = np.zeros(8, np.uint32)
        blinds.of("a0", key_id).combine(words, 4, 0, add=True)
        masks.append(words.tobytes())
    assert masks[0] != masks[1]


def test_a_model_of_a_round_that_cannot_be_is_not_taken(forwarded):
    forwarded.party("a0").model_round = 10**15
    letter = donated(forwarded)
    with pytest.raises(RemoteProtocolError, match="cannot take a model of round"):
        forwarded.party("a1")._accept(letter)


@pytest.mark.parametrize("claimed", [-2, 0])
def test_a_model_that_is_no_further_than_the_own_is_passed_over(forwarded, claimed):
    member, peer = forwarded.party("a1"), forwarded.party("a0")
    peer.model.apply(np.ones(peer.model.size, np.float32))
    peer.model_round = claimed
    before = member.model.dump()
    member._accept(donated(forwarded))
    assert (member.model.dump(), member.model_round) == (before, 0)


def test_a_member_that_knows_its_groups_secret_takes_no_other(forwarded):
    """With one that the sender has told the aggregator, the group's sums would be bare."""
    member, peer = forwarded.party("a1"), forwarded.party("a0")
    before = member.model.dump()
    peer.model_round, peer._group_secret = 1, bytes(32)
    letter = donated(forwarded)
    member._last_round = forwarded.round_index
    with pytest.raises(RemoteProtocolError, match="another secret than that of its group"):
        member._accept(letter)
    assert (member.model.dump(), member.model_round) == (before, 0)


def test_a_member_without_its_groups_secret_reads_no_sum(built):
    """Anybody could make one for it: blinds from no secret are known to all."""
    built.forward(*EVERYBODY)
    member = built.federation.restart("a1")
    built.greet("a1")
    words = memoryview(bytes(4 * member.model.size))
    forged = BlindSum(9, member.model_round, built.members(["a0", "a1"]), words)
    before = member.model.dump()
    with pytest.raises(RemoteProtocolError, match="a1 cannot read a sum of its group: it has lost the group's secret"):
        built.ask("a1", Finish("over", 9, updates=[forged]))
    assert member.model.dump() == before


def test_a_model_is_given_once_to_each(forwarded):
    forwarded.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="not each a peer of its group"):
        forwarded.ask("a0", forwarded.round_for("a0", donate_to=2 * forwarded.members(["a1"])))


@pytest.mark.parametrize("kind", ["validation", "test", "predict"])
def test_an_envelope_opens_for_batches_of_its_own_kind_alone(built, kind):
    """Else the aggregator could have a party train on rows that are held out."""
    built.make_envelopes(Batch(kind, 0, 0))
    with pytest.raises(OpenFailed):
        built.ask("b0", built.round_for("b0", batch=Batch("train", 0, 0)))


def test_a_refused_sum_leaves_no_blinds_behind(forwarded):
    member = forwarded.party("a0")
    forwarded.make_envelopes()
    one = BlindSum(1, 0, forwarded.members(["a0", "a1"]), memoryview(b"short"))
    with pytest.raises(RemoteProtocolError, match="expected a share of"):
        forwarded.ask("a0", forwarded.round_for("a0", updates=[one]))
    assert not member._group_blinds()._streams


def test_in_a_group_of_three_no_gradient_is_summed_alone():
    deputy = Deputy(Federation(job_of((3,)), watched=False))
    deputy.build()
    deputy.forward(ACTIVE, "a0", "a1", "a2")
    with pytest.raises(RemoteProtocolError, match="its peers would learn its gradient"):
        deputy.ask("a0", deputy.update_for("a0", members=deputy.members(["a0"])))
