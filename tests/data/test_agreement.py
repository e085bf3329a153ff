"""The parties of a group come to one encoder."""

import os
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_out import CELLS, columns_of, splits, table
from vfedsec.config.job import Group
from vfedsec.data import agreement
from vfedsec.data.agreement import GroupAgreement
from vfedsec.data.encoding import Encoder
from vfedsec.data.exact import UNIT_BITS
from vfedsec.data.letters import GroupCategories, GroupKinds, GroupSums, read
from vfedsec.data.summaries import ColumnSummary, ToldKind, summarise
from vfedsec.errors import DataError, RemoteProtocolError


def agreements(parts, entropy=os.urandom):
    """One member for each part of the columns."""
    names = tuple(f"p{place}" for place in range(len(parts)))
    columns = tuple(parts[0])
    group = Group(name="banks", parties=names, columns=columns)
    tables = {name: table(part, party=name) for name, part in zip(names, parts, strict=True)}
    return {name: GroupAgreement(group, name, summarise(tables[name], columns), entropy) for name in names}


def agree(members, choose=deque.popleft):
    """Carry every letter; gives them all, as (sender, receiver, letter)."""
    mail = deque((s, r, body) for s, member in members.items() for r, body in member.begin())
    carried = []
    while mail:
        sender, receiver, body = choose(mail)
        letter = read(sender, body)
        carried.append((sender, receiver, letter))
        mail.extend((receiver, to, more) for to, more in members[receiver].receive(sender, letter))
    return carried


def agreed(*parts, choose=deque.popleft):
    members = agreements(parts)
    agree(members, choose)
    return [member.summaries() for member in members.values()]


@settings(max_examples=100, deadline=None)
@given(splits(), st.randoms())
def test_a_groups_encoder_is_that_of_its_pooled_rows_to_the_last_bit(case, random):
    rows, ranges = case

    def choose(mail):
        mail.rotate(random.randrange(len(mail)))
        return mail.popleft()

    pooled = Encoder(summarise(table(columns_of(rows)), list(CELLS)), category_cap=3)
    whole = table(columns_of(rows))
    for summaries in agreed(*(columns_of(rows[a:b]) for a, b in ranges), choose=choose):
        encoder = Encoder(summaries, category_cap=3)
        assert encoder.names == pooled.names
        np.testing.assert_array_equal(encoder.transform(whole), pooled.transform(whole))


def test_a_party_alone_writes_to_nobody():
    members = agreements([{"x": [1, 2]}])
    assert members["p0"].begin() == [] and members["p0"].silent() == []
    assert members["p0"].summaries() == summarise(table({"x": [1, 2]}), ["x"])


def test_images_of_one_size_are_agreed_on():
    images = np.zeros((2, 3, 3), np.uint8)
    [summary], _ = agreed({"i": images}, {"i": images[:1]})
    assert (summary.kind, summary.told.shape, summary.count) == ("image", (3, 3), 3)


def test_a_column_that_nobody_has_a_value_of_is_encoded_as_missing():
    [summary], _ = agreed({"x": [None]}, {"x": [None, None]})
    assert (summary.kind, summary.count, summary.missing) == ("numeric", 0, 3)


def test_a_party_whose_dates_are_all_missing_follows_the_others():
    nothing = {"x": np.array(["NaT", "NaT"], "M8[us]")}
    for summaries in agreed(nothing, {"x": [1.0, 3.0]}):
        assert summaries[0].kind == "numeric"
        np.testing.assert_array_equal(Encoder(summaries).transform(table(nothing)), [[0, 1], [0, 1]])


# -- what is told --

SECRET = {"n": [1234567.0, 2.5, None], "t": ["Ulm", "Ulm", "Bonn"], "w": [True, False, True]}
OTHER = {"n": [1.0], "t": ["Trier"], "w": [False]}


def test_peers_are_told_which_texts_there_are_and_nothing_else_of_a_value():
    carried = agree(agreements([SECRET, OTHER, OTHER]))
    told = [letter for sender, _, letter in carried if sender == "p0"]
    kinds = [ToldKind(kind="numeric"), ToldKind(kind="categorical"), ToldKind(kind="boolean")]
    assert {type(letter) for letter in told} == {GroupKinds, GroupCategories, GroupSums}
    assert all(letter.columns == kinds for letter in told if isinstance(letter, GroupKinds))
    assert all(letter.columns == [[], ["Bonn", "Ulm"], []] for letter in told if isinstance(letter, GroupCategories))


def test_the_same_values_are_masked_differently_every_time():
    sums = []
    for _ in range(2):
        carried = agree(agreements([SECRET, OTHER, OTHER]))
        sums += [letter.masked for sender, _, letter in carried if isinstance(letter, GroupSums) and sender == "p0"]
    assert len({*sums}) == 2 and sums[0] == sums[1], "one sum a run, the same to every peer"


def test_masks_hide_a_members_sums_from_each_peer():
    """Two runs that differ in nothing but one member's values, under the same seeds: what it tells differs by exactly
    that, so nothing but the masks hides them, and they need seeds that are never used again; under fresh seeds no
    number of the letter is the bare one."""
    bare = agreements([SECRET, OTHER])
    agree(bare)
    layout = bare["p0"]._layout
    part = layout.part(summarise(table(SECRET), list(SECRET)))
    unmasked = layout.shape.masked(part, [])
    masked = bare["p0"]._sums["p0"].masked
    words = range(0, layout.shape.size, 8)
    same = [masked[place : place + 8] == unmasked[place : place + 8] for place in words]
    assert not any(same)


def test_peers_that_are_told_of_different_texts_mask_with_different_keys():
    """Else a member could shift one peer's counts against another's: next to an invented text, which nobody has, each
    count would stand by itself."""
    members = agreements([OTHER, OTHER, OTHER])
    kinds = {s: [read(s, body) for _, body in members[s].begin()] for s in members}
    for receiver, sender, place in [("p0", "p1", 0), ("p0", "p2", 0), ("p1", "p0", 0), ("p1", "p2", 1)]:
        members[receiver].receive(sender, kinds[sender][place])
    words = GroupCategories([[], ["Trier"], []])
    members["p0"].receive("p1", words)
    members["p1"].receive("p0", words)
    members["p0"].receive("p2", GroupCategories([[], ["A"], []]))
    members["p1"].receive("p2", GroupCategories([[], ["Z"], []]))
    keys = [{key for key, _ in members[name]._mask_keys(members[name]._layout)} for name in ("p0", "p1")]
    assert members["p0"]._layout.shape == members["p1"]._layout.shape
    assert not keys[0] & keys[1]


def test_every_pair_has_a_seed_of_its_own():
    drawn = iter(range(100))
    members = agreements([OTHER] * 3, entropy=lambda size: next(drawn).to_bytes(size))
    seeds = [read(s, body).seed for s, member in members.items() for _, body in member.begin()]
    assert len(set(seeds)) == 6


def test_nothing_of_a_column_is_told_before_its_kinds_go_together():
    """A column of numbers, read as categories because of decimal commas, must not go to a peer value by value."""
    members = agreements([{"x": ["4,0", "9,9"]}, {"x": [4.0, 9.9]}])
    with pytest.raises(DataError, match="column 'x' is categorical for p0, numeric for p1: declare its kind"):
        agree(members)
    assert members["p0"]._categories == members["p0"]._sums == {}


# -- letters that may not come --


def letters_of_p1(*parts):
    """What p1 tells p0, first to last, when all goes well."""
    members = agreements(parts)
    return [letter for sender, receiver, letter in agree(members) if (sender, receiver) == ("p1", "p0")]


@pytest.mark.parametrize("place", range(3))
def test_a_letter_that_comes_twice_is_refused(place):
    letter = letters_of_p1(SECRET, OTHER)[place]
    member = agreements([SECRET, OTHER])["p0"]
    member.receive("p1", letter)
    with pytest.raises(RemoteProtocolError, match=f"p1 sent {type(letter).__name__} twice"):
        member.receive("p1", letter)


@pytest.mark.parametrize("sender", ["p0", "p2", "shop"])
def test_a_letter_from_nobody_of_the_others_is_refused(sender):
    letter = letters_of_p1(SECRET, OTHER)[0]
    with pytest.raises(RemoteProtocolError, match=f"{sender} may not send GroupKinds here"):
        agreements([SECRET, OTHER])["p0"].receive(sender, letter)


@pytest.mark.parametrize("letter", [GroupKinds([], bytes(32)), GroupCategories([[]])])
def test_a_letter_of_other_columns_is_refused(letter):
    with pytest.raises(RemoteProtocolError, match="p1 told of other columns than those of banks"):
        agreements([SECRET, OTHER])["p0"].receive("p1", letter)


NUMBERS = 8 * (3 * 3 + 3) + 368 * 2 * 3  # three columns and three towns


@pytest.mark.parametrize("masked", [b"", bytes(NUMBERS + 8), bytes(NUMBERS), b"\x01" * NUMBERS])
def test_sums_that_cannot_be_are_refused(masked):
    members = agreements([SECRET, OTHER])
    kinds, categories, _ = letters_of_p1(SECRET, OTHER)
    for letter in (kinds, categories, GroupSums(masked)):
        members["p0"].receive("p1", letter)
    with pytest.raises(RemoteProtocolError, match="sums"):
        members["p0"].summaries()


def test_whoever_has_not_written_everything_is_named():
    members = agreements([SECRET, OTHER, OTHER])
    assert members["p0"].silent() == ["p1", "p2"]
    agree({name: members[name] for name in members})
    assert members["p0"].silent() == []


def summary(**changes):
    sound = {"count": 2, "missing": 1, "total": 3 << UNIT_BITS, "squares": 5 << 2 * UNIT_BITS}
    return ColumnSummary(name="age", told=ToldKind(kind="numeric"), **(sound | changes))


def check(total):
    """Take these sums as those of a group."""
    words = [list(total.categories)]
    layout = agreement._Layout(["age"], [total.told], words)
    return layout.summaries(layout.part([total]))


@pytest.mark.parametrize(
    "total",
    [
        summary(),
        summary(count=1 << 40, squares=1 << (2 * UNIT_BITS + 80)),
        ColumnSummary(name="age", told=ToldKind(kind="categorical"), count=3, missing=0, categories={"a": 2, "b": 1}),
    ],
)
def test_sums_that_can_be_are_taken(total):
    assert check(total) == [total]


@pytest.mark.parametrize(
    "total",
    [
        summary(count=(1 << 40) + 1),
        summary(missing=(1 << 40) + 1),
        summary(squares=4 << 2 * UNIT_BITS),
        summary(total=-4 << UNIT_BITS),
        ColumnSummary(name="age", told=ToldKind(kind="categorical"), count=2, missing=0, categories={"a": 2, "b": 1}),
        ColumnSummary(name="age", told=ToldKind(kind="categorical"), count=4, missing=0, categories={"a": 2, "b": 1}),
    ],
)
def test_each_way_in_which_sums_cannot_be_is_noticed_by_itself(total):
    with pytest.raises(RemoteProtocolError, match="the sums of column 'age'"):
        check(total)


@pytest.mark.parametrize("changed", ["p0", "p1"])
def test_either_half_of_a_pairs_seed_changes_its_masks(changed):
    def masked(seeds):
        members = agreements([{"age": ["1", "2"]}, {"age": ["3"]}])
        for name, member in members.items():
            member._seeds = dict.fromkeys(member._seeds, seeds.get(name, bytes(32)))
        return [letter.masked for *_, letter in agree(members) if isinstance(letter, GroupSums)]

    assert not set(masked({})) & set(masked({changed: bytes([1] * 32)}))


def test_sums_without_the_letters_before_them_leave_a_peer_silent():
    member = agreements([SECRET, OTHER])["p0"]
    member.receive("p1", letters_of_p1(SECRET, OTHER)[2])
    assert member.silent() == ["p1"]
