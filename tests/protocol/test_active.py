"""What the active party does beside what all do: batches, envelopes, labels, outputs."""

import msgspec
import numpy as np
import pytest

from deputy import EVERYBODY, Deputy
from federation import ACTIVE, Federation, job_of
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW
from vfedsec.protocol.messages import Batch, Finish, Prepare, Share

TEST = Batch("test", 0, 0)


def test_it_says_how_many_batches_a_pass_takes():
    deputy = Deputy(Federation(job_of(), watched=False))
    deputy.greet(*EVERYBODY)
    ready = deputy.ask(ACTIVE, Prepare())
    batches = deputy.party(ACTIVE).batches
    assert ready.train_batches == batches.count("train")
    assert (ready.validation_batches, ready.test_batches) == (batches.count("validation"), batches.count("test"))
    assert ready.predict_batches == batches.count("predict")


@pytest.mark.parametrize("weights", [None, (1.0, 2.0), "balanced"])
def test_it_tells_the_rows_of_classes_only_where_the_job_balances_them(weights):
    job = job_of()
    task = msgspec.structs.replace(job.task, class_weights=weights)
    deputy = Deputy(Federation(msgspec.structs.replace(job, task=task), watched=False))
    deputy.greet(*EVERYBODY)
    ready = deputy.ask(ACTIVE, Prepare())
    batches = deputy.party(ACTIVE).batches
    assert ready.class_rows == (batches.class_rows(2) if weights == "balanced" else [])
    assert sum(batches.class_rows(2)) == 120


@pytest.mark.parametrize(
    "batch", [Batch("train", 0, -1), Batch("train", 0, 99), Batch("train", -1, 0), Batch("test", 0, 3)]
)
def test_a_batch_that_does_not_exist_is_refused(built, batch):
    with pytest.raises(RemoteProtocolError, match="has no batch"):
        built.ask(ACTIVE, built.plan(batch))
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="cannot take batch"):
        built.ask(ACTIVE, built.round_for(ACTIVE, batch=batch))


def test_a_batch_other_than_the_one_that_was_sealed_is_refused(built):
    """The sum over rows of one batch here and of another there would hold single embeddings."""
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="cannot take batch"):
        built.ask(ACTIVE, built.round_for(ACTIVE, batch=Batch("train", 9, 0)))


def test_a_batch_that_is_refused_brings_no_gradient_either(built):
    built.forward(*EVERYBODY)
    built.make_envelopes()
    active = built.party(ACTIVE)
    before = active.model.dump()
    gradient = np.ones(len(built.gradient(ACTIVE)) // 4, "<f4").data.cast("B")
    with pytest.raises(RemoteProtocolError, match="cannot take batch"):
        built.ask(ACTIVE, built.round_for(ACTIVE, batch=Batch("train", 99, 0), gradient=gradient))
    assert active.model.dump() == before


def test_a_batch_comes_once(built):
    """Two sums over the same rows with different parties in them would differ by single embeddings."""
    batch = Batch("test", 5, 1)
    built.forward(*EVERYBODY, batch=batch)
    with pytest.raises(RemoteProtocolError, match="cannot take batch"):
        built.forward(ACTIVE, batch=batch)
    with pytest.raises(RemoteProtocolError, match="cannot take batch"):
        built.forward(ACTIVE, batch=Batch("test", 5, 0))
    built.forward(ACTIVE, batch=Batch("test", 6, 1))


def test_the_active_partys_embedding_is_nothing_where_nobody_else_holds_the_row(built):
    """Alone in the sum it would be bare."""
    active = built.party(ACTIVE)
    seen = {}
    share = active.secure.share
    active.secure.share = lambda values, r, index, pairs: (
        seen.__setitem__(index, values.copy()),
        share(values, r, index, pairs),
    )[1]
    built.forward(*EVERYBODY)
    rows = active.batches.rows("train", built.sealed.epoch, 0)
    alone = 0
    for index, group in enumerate(built.roles.groups):
        held = np.max([active.batches.partner_rows(party, rows) for party in group.parties], axis=0) >= 0
        alone += np.count_nonzero(~held)
        assert (seen[index][~held] == 0).all()
        assert (seen[index][held] != 0).any(axis=1).all()
    assert alone > 0


def test_rows_whose_embedding_the_active_party_left_out_give_it_no_gradient(built):
    built.forward(*EVERYBODY)
    active, seen = built.party(ACTIVE), []
    backward = active.model.backward
    active.model.backward = lambda gradient: (seen.append(gradient.copy()), backward(gradient))[1]
    ones = np.ones((16, built.roles.width), "<f4")
    built.ask(ACTIVE, Finish("over", built.round_index, gradient=ones.data.cast("B")))
    rows = active.batches.rows("train", built.sealed.epoch, 0)
    left_out = 0
    for columns, group in zip(built.roles.slices, built.roles.groups, strict=True):
        held = np.max([active.batches.partner_rows(party, rows) for party in group.parties], axis=0) >= 0
        left_out += np.count_nonzero(~held)
        assert np.array_equal(seen[0][:, columns].any(axis=1), held)
    assert left_out


def test_envelopes_are_of_one_length_for_everybody_and_every_batch(built):
    lengths = set()
    for batch in [Batch("train", 0, index) for index in range(5)] + [TEST, Batch("test", 0, 2)]:
        built.make_envelopes(batch)
        assert set(built.envelopes) == {"a0", "a1", "b0"}
        lengths |= {len(envelope.sealed) for envelope in built.envelopes.values()}
    assert lengths == {4 * 16 + 16}


def test_an_envelope_holds_the_parties_own_row_numbers(built):
    batches = built.party(ACTIVE).batches
    rows = {}
    for name in ("a0", "a1", "b0"):
        forward = built.party(name).model.forward
        built.party(name).model.forward = lambda r, *, training, n=name, f=forward: (
            rows.__setitem__(n, r),
            f(r, training=training),
        )[1]
    built.forward(*EVERYBODY)
    chosen = batches.rows("train", built.sealed.epoch, 0)
    for name, seen in rows.items():
        assert np.array_equal(seen, batches.partner_rows(name, chosen))
    held = [rows[name] != ABSENT_ROW for name in ("a0", "a1")]
    assert not (held[0] & held[1]).any()


def test_envelopes_are_made_for_parties_out_of_the_roster_too(built):
    """So that whoever comes back can take part in the very next round."""
    built.make_envelopes()
    share = built.ask(
        ACTIVE, built.round_for(ACTIVE, roster=built.members([ACTIVE, "b0"]), next_batch=Batch("train", 0, 1))
    )
    assert set(share.envelopes) == {"a0", "a1", "b0"}
    assert set(share.slices) == {1}


def test_a_plan_brings_envelopes_and_nothing_else(built):
    share = built.ask(ACTIVE, built.plan())
    assert share.envelopes
    assert (share.slices, share.labels, share.valid) == ({}, None, 0)


def test_a_slice_without_a_partner_is_not_sent(built):
    built.make_envelopes()
    share = built.ask(ACTIVE, built.round_for(ACTIVE, roster=built.members([ACTIVE, "a0"])))
    assert set(share.slices) == {0}
    built.make_envelopes()
    assert built.ask(ACTIVE, built.round_for(ACTIVE, roster=built.members([ACTIVE]))).slices == {}


def test_labels_come_in_the_order_of_the_batch(built):
    share = built.forward(ACTIVE, batch=Batch("train", 0, 1))[ACTIVE]
    batches = built.party(ACTIVE).batches
    assert np.array_equal(np.frombuffer(share.labels, "<f4"), batches.labels(batches.rows("train", 0, 1)))
    assert share.valid == 16


def test_a_prediction_takes_no_labels(built):
    share = built.forward(ACTIVE, batch=Batch("predict", 0, 0))[ACTIVE]
    assert isinstance(share, Share)
    assert share.labels is None
    assert share.valid == 16


def test_the_last_batch_says_how_many_rows_count(built):
    share = built.forward(ACTIVE, batch=Batch("test", 0, 2))[ACTIVE]
    assert share.valid == 40 - 2 * 16
    assert len(share.labels) == 4 * 16


@pytest.mark.parametrize("length", [0, 60, 68])
def test_outputs_of_another_length_are_refused(built, length):
    built.forward(*EVERYBODY, batch=Batch("predict", 0, 0))
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="outputs it did not ask for"):
        built.ask(ACTIVE, built.round_for(ACTIVE, outputs=memoryview(bytes(length))))


@pytest.mark.parametrize("batch", [Batch("train", 0, 0), TEST])
def test_outputs_that_nobody_asked_for_are_refused(built, batch):
    built.forward(*EVERYBODY, batch=batch)
    built.make_envelopes()
    with pytest.raises(RemoteProtocolError, match="outputs it did not ask for"):
        built.ask(ACTIVE, built.round_for(ACTIVE, outputs=memoryview(bytes(64))))


def test_outputs_are_kept_with_the_rows_they_are_of(built):
    batch = Batch("predict", 0, 1)
    built.forward(*EVERYBODY, batch=batch)
    built.make_envelopes()
    outputs = np.arange(16, dtype="<f4")
    built.ask(ACTIVE, built.round_for(ACTIVE, outputs=outputs.data.cast("B")))
    found = built.party(ACTIVE).outputs
    rows = built.party(ACTIVE).batches.rows("predict", 0, 1)
    assert [found[row][0] for row in rows.tolist()] == outputs.tolist()


def test_there_are_no_batches_before_the_preparation_is_over():
    deputy = Deputy(Federation(job_of(), watched=False))
    with pytest.raises(LocalProtocolError, match="has no batches yet"):
        _ = deputy.party(ACTIVE).batches
    with pytest.raises(LocalProtocolError, match="has no model yet"):
        _ = deputy.party(ACTIVE).model
