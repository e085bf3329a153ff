"""The conversation before the first round, both ends together."""

import os
from collections import deque
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.config.job import Active, Alignment, Group, Job, ModelSpec, Split, Task, Training
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.encoding import Encoder
from vfedsec.data.letters import GroupKinds, write
from vfedsec.data.preparation import ActivePreparation, PassivePreparation, first_holders
from vfedsec.data.summaries import ToldKind, merge, summarise
from vfedsec.data.table import Table
from vfedsec.errors import DataError, LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW


@dataclass
class Built:
    """Stands for a bottom model: remembers what it was built of."""

    features: np.ndarray
    width: int
    spec: ModelSpec
    seed: bytes


def job(join="inner", **changes):
    fields = {
        "name": "test",
        "active": Active(party="shop", columns=("spend",), model=ModelSpec(name="mlp")),
        "groups": (
            Group(name="banks", parties=("b1", "b2"), columns=("income",), width=8),
            Group(name="post", parties=("post",), columns=("town",), width=5),
        ),
        "training": Training(batch_size=2),
        "split": Split(test=0.25),
        "alignment": Alignment(join=join),
    }
    return Job(**fields | changes)


# ann is with b1 and b2, bob with b2, cid with no bank, dan with b1 but without post, eve as bob.
TABLES = {
    "shop": Table.from_columns("shop", list("abcdex"), {"spend": [1, 2, 3, 4, 5, 6]}, label=[0, 1, 1, 0, 0, 1]),
    "b1": Table.from_columns("b1", list("dqa"), {"income": [40, 99, 10]}),
    "b2": Table.from_columns("b2", list("ebax"), {"income": [50, 20, 11, 60]}),
    "post": Table.from_columns("post", list("abcezx"), {"town": list("ABCEZX")}),
}


def preparations(the_job, tables=TABLES):
    result = {"shop": ActivePreparation(the_job, tables["shop"], b"shop", Built)}
    for party in the_job.passive_parties:
        seed = party.encode()
        result[party] = PassivePreparation(the_job, party, tables[party], seed, Built, os.urandom)
    return result


def deliver(parties, order=deque.popleft):
    """Carry every letter to its receiver; `order` picks the next one."""
    mail = deque((s, r, body) for s, party in parties.items() for r, body in party.begin())
    while mail:
        sender, receiver, body = order(mail)
        mail.extend((receiver, to, b) for to, b in parties[receiver].receive(sender, body))


def finished(the_job, tables=TABLES, order=deque.popleft):
    parties = preparations(the_job, tables)
    deliver(parties, order)
    results = {name: party.finish(b"weights") for name, party in parties.items()}
    models = {name: model for name, (model, _) in results.items()}
    return models, results["shop"][1]


def partner_features(models, batches, party):
    """What the party's features are for each kept row of the active party."""
    rows = batches.partner_rows(party, np.arange(len(models["shop"].features), dtype=np.int32))
    return [None if r == ABSENT_ROW else models[party].features[r].tolist() for r in rows]


def encodings(parties, column):
    """Each party's encoded rows by id, as the merged summaries encode them."""
    tables = {party: TABLES[party] for party in parties}
    fitted = Encoder(merge({party: summarise(t, [column]) for party, t in tables.items()}))
    rows = {party: fitted.transform(t).tolist() for party, t in tables.items()}
    return {party: dict(zip(tables[party].ids, rows[party], strict=True)) for party in parties}


def kept_ids(models, batches):
    return batches.ids_of(np.arange(len(models["shop"].features), dtype=np.int32))


def test_an_inner_join_keeps_rows_that_every_group_has():
    assert kept_ids(*finished(job())) == ["a", "b", "e", "x"]


def test_a_left_join_keeps_all_rows_of_the_active_party():
    assert kept_ids(*finished(job("left"))) == list("abcdex")


@pytest.mark.parametrize("join", ["inner", "left"])
def test_row_numbers_lead_to_the_same_person(join):
    models, batches = finished(job(join))
    ids = kept_ids(models, batches)
    rows = encodings(["post"], "town")["post"]
    assert partner_features(models, batches, "post") == [rows.get(i) for i in ids]


def test_the_first_party_of_a_group_keeps_a_shared_person():
    models, batches = finished(job("left"))
    rows = encodings(["b1", "b2"], "income")
    wanted = [rows["b2"].get(i) if i not in rows["b1"] else None for i in "abcdex"]
    assert partner_features(models, batches, "b1") == [rows["b1"].get(i) for i in "abcdex"]
    assert partner_features(models, batches, "b2") == wanted


def test_labels_and_own_features_follow_the_kept_rows():
    models, batches = finished(job())
    rows = np.arange(4, dtype=np.int32)
    np.testing.assert_array_equal(batches.labels(rows), [0, 1, 0, 1])
    own = (np.array([1, 2, 5, 6]) - 3.5) / np.std([1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(models["shop"].features[:, 0], own, rtol=1e-6)


def test_models_get_the_widths_networks_and_seed_of_the_job():
    models, _ = finished(job())
    assert {name: model.width for name, model in models.items()} == {
        "shop": 13,
        "b1": 8,
        "b2": 8,
        "post": 5,
    }
    assert [models["shop"].spec.name, models["post"].spec.name] == ["mlp", "linear"]
    assert {model.seed for model in models.values()} == {b"weights"}


def test_only_the_active_party_has_batches():
    parties = preparations(job())
    deliver(parties)
    assert [parties[p].finish(b"")[1] for p in ("b1", "b2", "post")] == [None, None, None]


def test_batches_have_the_size_and_split_of_the_job():
    _, batches = finished(job("left"))
    assert batches.rows("train", 0, 0).shape == (2,)
    assert [batches.count(kind) for kind in ("train", "test")] == [2, 1]


def test_targets_of_a_regression_decide_nothing_of_who_is_held_out():
    ids, held_out = [f"id{row}" for row in range(40)], []
    for label in ([0, 1] * 20, range(40)):
        shop = Table.from_columns("shop", ids, {"spend": range(40)}, label=list(label))
        _, batches = finished(job("left", task=Task(kind="regression")), TABLES | {"shop": shop})
        rows = [batches.rows("test", 0, index) for index in range(batches.count("test"))]
        held_out.append(set(batches.ids_of(np.concatenate(rows))))
    assert held_out[0] == held_out[1]


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_in_any_table_decides_nothing_of_splits_and_batches(random):
    ids = [f"id{row}" for row in range(40)]

    def table(party, column, known, mixed):
        numbers = [int(i[2:]) for i in (random.sample(known, len(known)) if mixed else known)]
        label = [number % 3 == 0 for number in numbers] if party == "shop" else None
        return Table.from_columns(party, [f"id{number}" for number in numbers], {column: numbers}, label=label)

    def batches_of(*, mixed):
        tables = {
            "shop": table("shop", "spend", ids, mixed),
            "b1": table("b1", "income", ids[:20], mixed),
            "b2": table("b2", "income", ids[15:], mixed),
            "post": table("post", "town", ids[3:], mixed),
        }
        the_job = job(training=Training(batch_size=4), split=Split(test=0.2, validation=0.2))
        batches = finished(the_job, tables)[1]
        return {
            (kind, epoch, index): batches.ids_of(batches.rows(kind, epoch, index))
            for kind in ("train", "validation", "test")
            for epoch in range(2)
            for index in range(batches.count(kind))
        }

    assert batches_of(mixed=False) == batches_of(mixed=True)


def test_passive_parties_decide_nothing_of_splits_and_batches():
    found = []
    for changes in ({}, {"post": Table.from_columns("post", list("zxc"), {"town": list("ABC")})}):
        _, batches = finished(job("left"), TABLES | changes)
        found.append([batches.ids_of(batches.rows(kind, 0, 0)) for kind in ("train", "validation", "test")])
    assert found[0] == found[1]


def test_the_order_of_letters_makes_no_difference():
    (one, first), (other, second) = finished(job()), finished(job(), order=deque.pop)
    for party in one:
        np.testing.assert_array_equal(one[party].features, other[party].features)
    np.testing.assert_array_equal(first.rows("train", 0, 0), second.rows("train", 0, 0))


def test_a_passive_partys_order_is_its_secret():
    ids = [f"id{i}" for i in range(50)]
    table = Table.from_columns("post", ids, {"town": list(map(str, range(50)))})
    orders = [Encoder(summarise(table, ["town"])).transform(table)[:, 0].tolist()]
    for seed in (b"one", b"two"):
        parties = preparations(job()) | {"post": PassivePreparation(job(), "post", table, seed, Built, os.urandom)}
        deliver(parties)
        orders.append(parties["post"].finish(b"")[0].features[:, 0].tolist())
    assert len(set(map(tuple, orders))) == 3


def test_a_table_without_labels_is_prepared_for_prediction():
    shop = Table.from_columns("shop", list("abcdex"), {"spend": [1, 2, 3, 4, 5, 6]})
    models, batches = finished(job(), TABLES | {"shop": shop})
    assert [batches.count(kind) for kind in ("train", "test", "predict")] == [0, 0, 2]
    assert kept_ids(models, batches) == ["a", "b", "e", "x"]


def test_classes_are_held_out_in_proportion():
    ids = [f"id{i}" for i in range(40)]
    shop = Table.from_columns("shop", ids, {"spend": range(40)}, label=[0, 1] * 20)
    _, batches = finished(job("left"), TABLES | {"shop": shop})
    rows = [batches.rows("test", 0, i) for i in range(batches.count("test"))]
    assert batches.labels(np.concatenate(rows)).sum() == 5


def test_members_of_a_group_encode_alike_to_the_last_bit():
    # So far from zero that the last bit of a mean shows in the features.
    numbers = 1e9 + np.random.default_rng(2).normal(size=(3, 9)) * 1e-6
    numbers[:, 0] = 1e9
    names = ("b1", "b2", "b3")
    group = Group(name="banks", parties=names, columns=("income",))
    ids = list("abcdefghx")
    banks = {
        name: Table.from_columns(name, ids, {"income": column}) for name, column in zip(names, numbers, strict=True)
    }
    models, _ = finished(job(groups=(group,)), {"shop": TABLES["shop"]} | banks)
    same = [set(models[name].features[:, 0].tolist()) for name in names]
    expected = Encoder(merge({n: summarise(banks[n], ["income"]) for n in names}))
    value = expected.transform(banks["b1"])[0, 0]
    assert all(value in features for features in same)


def test_regression_is_prepared_without_strata():
    _, batches = finished(job("left", task=Task(kind="regression")))
    assert batches.count("test") == 1


def test_an_active_party_without_columns_has_features_of_no_width():
    models, _ = finished(job(active=Active(party="shop")))
    assert models["shop"].features.shape == (4, 0)


def test_nothing_shared_is_refused_with_the_sizes():
    post = Table.from_columns("post", ["nobody"], {"town": ["Ulm"]})
    message = "of 6 rows, b1 has 2, b2 has 4, post has 0"
    with pytest.raises(DataError, match=f"party shop, memory: no row is shared .* {message}"):
        finished(job(), TABLES | {"post": post})


def test_columns_that_do_not_merge_are_refused():
    b2 = Table.from_columns("b2", list("eb"), {"income": ["high", "low"]})
    with pytest.raises(DataError, match="'income' is numeric for b1, categorical for b2"):
        finished(job(), TABLES | {"b2": b2})


def test_the_active_party_cannot_finish_without_every_reply():
    with pytest.raises(DataError, match="party shop never got the letters of b1, b2, post"):
        preparations(job())["shop"].finish(b"")


def test_a_passive_party_cannot_finish_without_its_letters():
    with pytest.raises(DataError, match="party b1 never got the letters of shop, b2"):
        preparations(job())["b1"].finish(b"")


def test_a_party_outside_the_job_is_refused():
    with pytest.raises(LocalProtocolError, match="stranger is in no group"):
        PassivePreparation(job(), "stranger", TABLES["post"], b"", Built, os.urandom)


def kinds_letter(*kinds):
    return write(GroupKinds([ToldKind(kind=kind) for kind in kinds], bytes(32)))


OPENING, OPENED = write(AlignmentOpening(1)), write(AlignmentOpened(1))
REQUEST, REPLY = write(AlignmentRequest(0, b"")), write(AlignmentReply(0, b"", b""))


@pytest.mark.parametrize(
    ("receiver", "sender", "letter"),
    [
        ("shop", "b1", OPENING),
        ("shop", "b1", REQUEST),
        ("shop", "b1", kinds_letter("numeric")),
        ("shop", "stranger", OPENED),
        ("shop", "stranger", REPLY),
        ("b1", "b2", OPENING),
        ("b1", "b2", REQUEST),
        ("b1", "shop", OPENED),
        ("b1", "shop", REPLY),
        ("b1", "shop", kinds_letter("numeric")),
        ("b1", "post", kinds_letter("numeric")),
    ],
)
def test_a_letter_from_the_wrong_party_is_refused(receiver, sender, letter):
    with pytest.raises(RemoteProtocolError, match=f"{sender} may not send"):
        preparations(job())[receiver].receive(sender, letter)


def opened(parties, name="b1"):
    """The first request of the alignment with a party."""
    letters = dict(parties["shop"].begin())
    [(_, answer)] = parties[name].receive("shop", letters[name])
    [(receiver, request)] = parties["shop"].receive(name, answer)
    assert receiver == name
    return request


def test_a_second_alignment_request_is_refused():
    parties = preparations(job())
    letter = opened(parties)
    parties["b1"].receive("shop", letter)
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        parties["b1"].receive("shop", letter)


def test_a_second_alignment_reply_is_refused():
    parties = preparations(job())
    [(_, reply)] = parties["b1"].receive("shop", opened(parties))
    parties["shop"].receive("b1", reply)
    with pytest.raises(RemoteProtocolError, match="b1 sent a piece of the alignment out of turn"):
        parties["shop"].receive("b1", reply)


def test_every_alignment_has_secret_exponents_of_its_own():
    """With one that is known, or used twice, ids could be guessed and tried."""
    one, two = preparations(job()), preparations(job())
    requests = [opened(parties) for parties in (one, two)]
    assert requests[0] != requests[1]
    replies = [parties["b1"].receive("shop", requests[0]) for parties in (one, two)]
    assert replies[0] != replies[1]


def test_progress_is_that_of_the_alignment():
    parties = preparations(job())
    assert {party.progress() for party in parties.values()} == {(0, 0)}
    deliver(parties)
    assert {name: party.progress() for name, party in parties.items()} == {
        "shop": (3 * 6 + 13, 3 * 6 + 13),
        "b1": (9, 9),
        "b2": (10, 10),
        "post": (12, 12),
    }


def test_a_refused_request_leaves_the_party_unaligned():
    parties = preparations(job())
    opened(parties)
    with pytest.raises(RemoteProtocolError):
        parties["b1"].receive("shop", REQUEST)
    with pytest.raises(DataError, match="never got the letters of shop"):
        parties["b1"].finish(b"")


@pytest.mark.parametrize(("column", "label"), [(["1", "2"] * 10 + ["x"], "0"), (range(21), "maybe")])
def test_the_active_partys_table_is_read_before_anything_is_sent(column, label):
    ids = [f"id{row}" for row in range(21)]
    columns = {"spend": list(column)}
    table = Table.from_columns("shop", ids, columns, label=[label] * 21, kinds={"spend": "numeric"})
    with pytest.raises(DataError, match=r"party shop, memory, .*data row"):
        ActivePreparation(job(), table, b"", Built)


def kinds_with(**change):
    told = {"kind": "numeric", "shape": [], "pixel": ""}
    letter = {"type": "GroupKinds", "columns": [told | change], "seed": bytes(32)}
    return msgspec.msgpack.encode(letter)


def test_the_letter_that_is_changed_below_is_accepted_unchanged():
    assert preparations(job())["b1"].receive("b2", kinds_with())


@pytest.mark.parametrize(
    "letter",
    [
        b"",
        b"\xc1",
        b"\x81\xa4type\xa1\xff",
        b"\x91" * 5000,
        b"\x82\xa1a" + b"\x91" * 5000 + b"\xc0\xa4type\xaaGroupKinds",
        kinds_with()[:-1],
        kinds_with() + b"\x00",
        kinds_with(kind="odd"),
        kinds_with(shape=[-1]),
        kinds_with(shape=["a"]),
        msgspec.msgpack.encode({"type": "GroupKinds", "columns": [], "seed": bytes(32), "surprise": 1}),
        msgspec.msgpack.encode({"type": "GroupKinds", "columns": [], "seed": bytes(31)}),
        msgspec.msgpack.encode({"type": "Surprise"}),
    ],
)
def test_a_malformed_letter_is_refused(letter):
    with pytest.raises(RemoteProtocolError, match="b2 sent a letter of preparation that cannot"):
        preparations(job())["b1"].receive("b2", letter)


def mid_alignment():
    """Parties of which b1 and the shop have told each other their sizes."""
    parties = preparations(job())
    return parties, opened(parties)


ALIGN_PARTIES, FIRST_REQUEST = mid_alignment()
GENUINE = (
    ("b1", "shop", FIRST_REQUEST),
    ("b1", "b2", kinds_letter("numeric")),
    ("shop", "b1", ALIGN_PARTIES["b1"].receive("shop", FIRST_REQUEST)[0][1]),
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(GENUINE), st.data())
def test_a_damaged_letter_is_taken_or_refused_and_nothing_else(case, data):
    receiver, sender, letter = case
    place = data.draw(st.integers(0, len(letter) - 1))
    damaged = bytearray(letter)
    damaged[place] ^= data.draw(st.integers(1, 255))
    try:
        answers = mid_alignment()[0][receiver].receive(sender, bytes(damaged))
    except RemoteProtocolError:
        return
    assert all(isinstance(body, bytes) for _, body in answers)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["shop", "b1"]))
def test_preparation_gets_fed_garbage(garbage, receiver):
    with pytest.raises(RemoteProtocolError):
        ALIGN_PARTIES[receiver].receive("b2", garbage)


def test_every_row_is_left_to_its_first_holder():
    maps = {"p": [-1, 4, -1, 0], "q": [7, 5, -1, 1], "r": [3, 3, 3, 3]}
    held = first_holders({party: np.array(rows, np.int32) for party, rows in maps.items()})
    assert {party: rows.tolist() for party, rows in held.items()} == {
        "p": [-1, 4, -1, 0],
        "q": [7, -1, -1, -1],
        "r": [-1, -1, 3, -1],
    }
