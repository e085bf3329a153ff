"""A second alignment of the same tables sends no elements, and trusts nothing that is not sound."""

import hashlib
from copy import deepcopy

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignments import DictMemory, Sides, records
from vfedsec.data import remembering
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentRequest
from vfedsec.data.letters import write
from vfedsec.data.remembering import OrderMemory, PlacesMemory, RememberedPlaces
from vfedsec.errors import RemoteProtocolError

IDS = [f"id{number}" for number in range(9)]
ACTIVE, FIRST, SECOND = IDS[:7], [IDS[8], *IDS[5:1:-1]], [IDS[3], "x"]
SEEDS = [bytes(32), bytes([1]) * 32]


def fresh():
    return {name: DictMemory() for name in ("shop", "bank0", "bank1")}


def aligned_once():
    memories = fresh()
    Sides(ACTIVE, FIRST, SECOND, memories=memories).run()
    return memories


REMEMBERED = aligned_once()


def again(active=ACTIVE, first=FIRST, second=SECOND, *, memories=None, seed=SEEDS[1]):
    memories = deepcopy(REMEMBERED) if memories is None else memories
    sides = Sides(active, first, second, memories=memories, seed=seed).run()
    for name in sides.tables:
        assert sides.matched(name) == sides.expected(name)
    return sides


def pieces(sides):
    return [sides.pieces(name) for name in sides.tables]


FULL = pieces(again(memories=fresh()))


def test_the_same_tables_are_not_aligned_again():
    sides = again()
    assert pieces(sides) == [0, 0]
    assert sum(len(write(letter)) for _, _, letter in sides.sent) < 400
    assert sides.active.progress() == sides.passive["bank0"].progress() == (0, 0)
    assert all(side.is_over for side in sides.passive.values())


@pytest.mark.parametrize("shift", range(1, len(ACTIVE)))
def test_remembered_places_follow_rows_that_have_gone_round(shift):
    """Of a reversal, the permutation and its inverse are the same."""
    sides = again(ACTIVE[shift:] + ACTIVE[:shift])
    assert pieces(sides) == [0, 0]


def test_a_changed_table_of_a_passive_party_gets_a_new_order():
    seed = b"another seed of the run".ljust(32)
    changed = [*FIRST, "somebody new"]
    order = again(first=changed, seed=seed).passive["bank0"].order.tolist()
    assert order == again(first=changed, seed=seed, memories=fresh()).passive["bank0"].order.tolist()


def test_the_order_of_rows_stays_though_the_seed_of_a_run_changes():
    orders = [again(seed=seed).passive["bank0"].order.tolist() for seed in SEEDS]
    assert orders[0] == orders[1]
    assert again(memories=fresh()).passive["bank0"].order.tolist() != orders[0]


def test_rows_in_another_order_are_the_same_table():
    sides = again(ACTIVE[::-1], sorted(FIRST), SECOND[::-1])
    assert pieces(sides) == [0, 0]


@pytest.mark.parametrize("change", [["new"], []])
def test_a_changed_table_of_a_passive_party_is_aligned_anew_and_only_that(change):
    sides = again(first=FIRST[:-1] + change)
    assert pieces(sides)[0] > 0 == pieces(sides)[1]
    later = again(first=FIRST[:-1] + change, memories=deepcopy(memories_of(sides)))
    assert pieces(later) == [0, 0]


def memories_of(sides):
    names = {"shop": sides.active._memory, **{name: side._memory for name, side in sides.passive.items()}}
    return {name: memory._records._memory for name, memory in names.items()}


@pytest.mark.parametrize("change", [["new"], []])
def test_a_changed_table_of_the_active_party_is_aligned_anew_with_everybody(change):
    sides = again(active=ACTIVE[:-1] + change)
    assert all(pieces(sides))
    assert all(letter.fingerprint == b"" for _, _, letter in sides.sent if isinstance(letter, AlignmentOpening))


@pytest.mark.parametrize("forgetful", ["shop", "bank0"])
def test_what_one_side_has_lost_is_aligned_anew(forgetful):
    memories = deepcopy(REMEMBERED)
    memories[forgetful] = DictMemory()
    sides = again(memories=memories)
    assert pieces(sides) == (FULL if forgetful == "shop" else [FULL[0], 0])


def test_a_passive_party_that_lost_its_memory_and_has_its_seed_still_skips():
    memories = deepcopy(REMEMBERED) | {"bank0": DictMemory()}
    assert pieces(again(memories=memories, seed=SEEDS[0])) == [0, 0]


def test_who_wants_nothing_remembered_is_not_remembered_by_the_other_side():
    memories = fresh()
    del memories["bank0"]
    for _ in range(2):
        sides = again(memories=memories, seed=SEEDS[0])
    assert pieces(sides) == [FULL[0], 0]
    fingerprints = {name: letter.fingerprint for name, _, letter in sides.sent if isinstance(letter, AlignmentOpened)}
    assert fingerprints["bank0"] == b"" != fingerprints["bank1"]
    assert len(memories["shop"].kept) == 1


def test_an_active_party_that_remembers_nothing_aligns_every_time():
    memories = fresh()
    del memories["shop"]
    for _ in range(2):
        assert pieces(again(memories=memories)) == FULL


@given(
    st.lists(st.sampled_from(IDS), unique=True, max_size=6),
    st.lists(st.tuples(st.lists(st.sampled_from(IDS), unique=True, max_size=6), st.booleans()), max_size=3),
    st.integers(1, 7),
)
def test_whatever_is_remembered_the_matches_are_those_of_a_plain_intersection(active, runs, size):
    memories = {"shop": DictMemory(), "bank0": DictMemory()}
    for passive, loses in runs:
        sides = Sides(active, passive, size=size, memories=memories, seed=SEEDS[loses]).run()
        assert sides.matched() == sides.expected()
        if loses:
            memories["shop" if len(passive) % 2 else "bank0"].kept.clear()
    assert not any(memory.warnings for memory in memories.values())


# -- what is kept and told --


def test_no_id_is_kept_or_told():
    active, passive = [f"client-{number}" for number in range(5)], [f"client-{number}" for number in range(3, 8)]
    memories = fresh()
    for _ in range(2):
        sides = Sides(active, passive, memories=memories).run()
    everything = [*memories["shop"].kept.values(), *memories["bank0"].kept.values()]
    everything += [write(letter) for _, _, letter in sides.sent]
    assert len(everything) == 4
    assert not any(b"client" in data for data in everything)


def fingerprint(ids, seed=SEEDS[0], party="bank0", partner="shop", identities=None):
    return OrderMemory(ids, seed, records(DictMemory(), party, identities), partner).fingerprint


def test_a_fingerprint_depends_on_the_ids_the_secret_and_both_parties():
    told = {
        fingerprint(IDS),
        fingerprint(IDS[:-1]),
        fingerprint([*IDS[:-1], "id9"]),
        fingerprint(["id0id1", *IDS[2:]]),
        fingerprint(IDS, SEEDS[1]),
        fingerprint(IDS, party="bank1"),
        fingerprint(IDS, partner="other shop"),
        fingerprint(IDS, identities={"shop": "another of that name"}),
    }
    assert len(told) == 8
    assert fingerprint(IDS[::-1]) in told


def test_a_fingerprint_is_no_hash_that_others_could_make():
    data = b"".join(msgspec.msgpack.encode(ids) for ids in (IDS, sorted(IDS)))
    assert fingerprint(IDS) != hashlib.sha256(data).digest()


def test_an_active_party_that_makes_up_a_fingerprint_gets_an_alignment_like_any_other():
    sides = Sides(ACTIVE, FIRST, memories=fresh())
    opened = sides.answered("bank0", AlignmentOpening(7, bytes(32)))
    assert opened.fingerprint != bytes(32)
    assert not sides.passive["bank0"].is_over
    with pytest.raises(RemoteProtocolError, match="shop sent 0 bytes"):
        sides.answered("bank0", AlignmentRequest(0, b""))


def test_nothing_remembered_on_both_sides_is_no_match():
    sides = Sides(ACTIVE, FIRST)
    assert sides.answered("bank0", AlignmentOpening(7, b"")).fingerprint == b""
    assert not sides.passive["bank0"].is_over


def test_after_skipping_a_passive_party_refuses_elements():
    sides = Sides(ACTIVE, FIRST, SECOND, memories=deepcopy(REMEMBERED))
    sides.answered("bank0", sides.active.begin()["bank0"])
    assert sides.passive["bank0"].is_over
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        sides.answered("bank0", AlignmentRequest(0, b""))


@pytest.mark.parametrize("told", [AlignmentOpened(len(FIRST) + 1), AlignmentOpened(len(FIRST), bytes(32))])
def test_another_fingerprint_or_size_than_remembered_is_aligned_anew(told):
    sides = Sides(ACTIVE, FIRST, SECOND, memories=deepcopy(REMEMBERED))
    remembered = sides.active.begin()["bank0"].fingerprint
    told = told if told.fingerprint else msgspec.structs.replace(told, fingerprint=remembered)
    assert isinstance(sides.taken("bank0", told), AlignmentRequest)


# -- what is not sound --


def changed(memories, party, change):
    memories = deepcopy(memories)
    memories[party].kept = {name: change(data) for name, data in memories[party].kept.items()}
    return memories


DAMAGE = {
    "emptied": lambda data: b"",
    "cut": lambda data: data[:-1],
    "grown": lambda data: data + b"\0",
    "of another version": lambda data: data.replace(b"alignment 1\n", b"alignment 2\n"),
    "flipped in the checksum": lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:],
    "flipped at the end": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "something else": lambda data: b"\x80\x04." * 50,
}


@pytest.mark.parametrize("party", ["shop", "bank0"])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_is_told_and_not_used(party, damage):
    memories = changed(REMEMBERED, party, damage)
    sides = again(memories=memories)
    assert pieces(sides) == (FULL if party == "shop" else [FULL[0], 0])
    assert all("remembered of its alignment with" in text and "is damaged" in text for text in memories[party].warnings)
    assert len(memories[party].warnings) == (2 if party == "shop" else 1)
    assert pieces(again(memories=memories)) == [0, 0]


@given(st.data())
def test_any_changed_byte_is_told(data):
    name, kept = data.draw(st.sampled_from(sorted(REMEMBERED["shop"].kept.items())))
    place = data.draw(st.integers(0, len(kept) - 1))
    memory = DictMemory(
        {name: kept[:place] + bytes([kept[place] ^ data.draw(st.integers(1, 255))]) + kept[place + 1 :]}
    )
    kept_places = PlacesMemory(ACTIVE, records(memory, "shop"))
    assert [kept_places.recall(bank) for bank in ("bank0", "bank1")] == [None, None]
    assert len(memory.warnings) == 1


def test_a_record_of_another_pair_is_not_used():
    memories = deepcopy(REMEMBERED)
    kept = memories["shop"].kept
    first, second = kept
    kept[first], kept[second] = kept[second], kept[first]
    assert pieces(again(memories=memories)) == FULL
    assert len(memories["shop"].warnings) == 2


def test_a_partner_that_somebody_else_has_become_is_not_taken_for_the_old_one():
    memory = DictMemory()
    places = RememberedPlaces(bytes(32), 9, np.arange(7, dtype=np.int32))
    PlacesMemory(ACTIVE, records(memory, "shop", identities={"bank0": "old"})).keep("bank0", places)
    assert PlacesMemory(ACTIVE, records(memory, "shop", identities={"bank0": "old"})).recall("bank0")
    assert PlacesMemory(ACTIVE, records(memory, "shop", identities={"bank0": "new"})).recall("bank0") is None
    assert memory.warnings == []


def forged(**changes):
    """A memory of the shop whose checksum is right and whose record says what no alignment gives."""
    memory, kept = DictMemory(), deepcopy(REMEMBERED)["shop"]
    store = records(kept, "shop")
    own = PlacesMemory(ACTIVE, store)
    remembered = own.recall("bank0")
    places = changes.get("places", remembered.places)
    record = remembering._Places(own._digest, remembered.fingerprint, changes.get("rows", 5), places.tobytes())
    records(memory, "shop").save("bank0", record)
    return memory


def places_of(*rows):
    return np.array(rows, np.int32)


@pytest.mark.parametrize(
    "changes",
    [
        {"places": places_of(0, 1, 2, 3, 4, -1)},
        {"places": places_of(0, 1, 2, 3, 4, -1, -1, -1)},
        {"places": places_of(0, 1, 2, 3, 5, -1, -1)},
        {"places": places_of(0, 1, 2, 3, -2, -1, -1)},
        {"places": places_of(0, 1, 2, 3, 3, -1, -1)},
        {"places": places_of(2**31 - 1, 1, 2, 3, 4, -1, -1)},
        {"rows": 1},
        {"rows": 0},
    ],
)
def test_places_that_no_alignment_gives_are_told_and_not_used(changes):
    memory = forged(**changes)
    assert PlacesMemory(ACTIVE, records(memory, "shop")).recall("bank0") is None
    assert len(memory.warnings) == 1


def test_the_record_that_is_forged_above_is_used_unchanged():
    memory = forged()
    assert PlacesMemory(ACTIVE, records(memory, "shop")).recall("bank0")
    assert not memory.warnings
