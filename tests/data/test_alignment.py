"""Private set intersection against plain set intersection, piece by piece."""

from contextlib import suppress

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from alignments import Sides
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.curve import ELEMENT_BYTES, Curve, new_key
from vfedsec.data.letters import write
from vfedsec.data.pieces import rows_a_piece
from vfedsec.errors import RemoteProtocolError

ID_SETS = st.lists(st.text("abé日", max_size=3), unique=True, max_size=12)
IDS = [f"id{number}" for number in range(7)]


@given(ID_SETS, ID_SETS, st.integers(1, 13))
def test_matches_are_those_of_a_plain_intersection_in_pieces_of_any_size(active, passive, size):
    sides = Sides(active, passive, size=size).run()
    assert sides.matched() == sides.expected()
    assert sides.passive["bank0"].is_over
    assert sides.pieces() == -(-max(len(active), len(passive)) // size)


def test_nothing_shared_gives_absent_rows_only():
    assert Sides(["a", "b"], ["c"]).run().matched() == [None, None]


def test_two_cores_find_what_one_finds():
    active = [f"p{number}" for number in range(1500)]
    passive = [f"p{number}" for number in range(700, 2100)]
    sides = [Sides(active, passive, size=1000, threads=threads).run() for threads in (1, 2)]
    assert sides[0].matched() == sides[1].matched() == sides[0].expected()
    assert sides[0].curve.seconds_elsewhere == 0 < sides[1].curve.seconds_elsewhere


def test_passive_parties_of_any_size_are_aligned_in_one_go():
    sides = Sides(IDS, IDS[5:], [*IDS, *"abcdefghijkl"], ["nobody"], size=2).run()
    for name in sides.tables:
        assert sides.matched(name) == sides.expected(name)


def test_the_active_partys_elements_are_made_once_for_all():
    sides = Sides(IDS, IDS, IDS[3:], [*IDS, *"abcdefghijkl"], size=2)
    made = []
    hashed = sides.curve.hashed
    sides.curve.hashed = lambda ids, key: made.append((key, len(ids))) or hashed(ids, key)
    sides.run()
    active_key = sides.active._own.key
    assert sum(count for key, count in made if key == active_key) == len(IDS)


def test_memory_is_given_back_when_all_is_done():
    sides = Sides(IDS, IDS, size=2).run()
    assert not sides.active._own._made
    assert not len(sides.passive["bank0"]._theirs)


def test_progress_goes_from_nothing_to_the_rows_of_both_sides():
    sides = Sides(IDS, IDS[:3], size=3)
    seen = [sides.active.progress()]
    take = sides.active.take
    sides.active.take = lambda *letter: (take(*letter), seen.append(sides.active.progress()))[0]
    sides.run()
    assert seen == [(0, 0), (6, 10), (9, 10), (10, 10)]
    assert sides.passive["bank0"].progress() == (10, 10)


@pytest.mark.parametrize("parties", [1, 2, 3, 10, 100, 20_000])
def test_a_round_of_letters_stays_below_a_megabyte(parties):
    size = rows_a_piece(parties)
    piece = bytes(ELEMENT_BYTES * size)
    letters = [write(AlignmentReply(2**31 - 1, piece, piece)), write(AlignmentRequest(2**31 - 1, piece))]
    assert parties * len(letters[0]) < 2**20 or size == 1
    assert len(letters[1]) < len(letters[0])
    assert size * parties >= 10_000 or parties > 10_000


# -- what is told --


def test_no_letter_holds_an_id():
    sides = Sides(["client-17", "client-18"], ["client-17"]).run()
    assert not any(b"client" in write(letter) for _, _, letter in sides.sent)


def test_blinded_ids_of_two_runs_have_nothing_in_common():
    elements = []
    for sides in (Sides(IDS, IDS).run(), Sides(IDS, IDS).run()):
        bodies = [letter for _, _, letter in sides.sent if isinstance(letter, AlignmentRequest | AlignmentReply)]
        elements.append({body.elements[at : at + 33] for body in bodies for at in range(0, len(body.elements), 33)})
    assert len(elements[0]) == len(elements[1]) == 2 * len(IDS)
    assert elements[0].isdisjoint(elements[1])


def test_every_new_key_is_another():
    assert new_key() != new_key()


def test_a_passive_party_hears_of_an_unmatched_row_nothing_but_that_it_exists():
    """Its letters from the active party have one length and one number, whoever stands in the active party's table."""
    told = []
    for active in (IDS, [*IDS[:-1], "stranger"]):
        sides = Sides(active, IDS, size=3).run()
        letters = [letter for sender, _, letter in sides.sent if sender == "shop"]
        told.append([(type(letter), len(write(letter))) for letter in letters])
    assert told[0] == told[1]


# -- who does not keep to it --


def opened(active=IDS, passive=IDS[2:], size=3):
    """Sides that have told each other their rows, and the first request."""
    sides = Sides(active, passive, size=size)
    request = sides.taken("bank0", sides.answered("bank0", sides.active.begin()["bank0"]))
    return sides, request


OFF_CURVE = b"\x02" + b"\xff" * 32
UNCOMPRESSED = (
    ec.derive_private_key(7, ec.SECP256R1()).public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
)
ELEMENT = Curve().hashed(["x"], new_key())
UNREADABLE = [OFF_CURVE, bytes(33), UNCOMPRESSED[:33]]


@pytest.mark.parametrize("element", UNREADABLE)
def test_elements_that_are_not_of_the_curve_are_refused(element):
    sides, request = opened()
    elements = element + request.elements[33:]
    with pytest.raises(RemoteProtocolError, match="shop sent alignment elements that cannot be read"):
        sides.answered("bank0", AlignmentRequest(0, elements))
    reply = sides.answered("bank0", request)
    with pytest.raises(RemoteProtocolError, match="bank0 sent alignment elements that cannot be read"):
        sides.taken("bank0", AlignmentReply(0, reply.answers, element + reply.elements[33:]))


@pytest.mark.parametrize("length", [0, 1, 33, 3 * 33 - 1, 3 * 33 + 1, 4 * 33])
def test_a_piece_of_another_length_is_refused(length):
    sides, request = opened()
    wrong = (request.elements * 2)[:length]
    with pytest.raises(RemoteProtocolError, match=f"shop sent {length} bytes of alignment elements where 3 elem"):
        sides.answered("bank0", AlignmentRequest(0, wrong))
    reply = sides.answered("bank0", request)
    for letter in (AlignmentReply(0, wrong, reply.elements), AlignmentReply(0, reply.answers, wrong)):
        with pytest.raises(RemoteProtocolError, match=f"bank0 sent {length} bytes of alignment elements where 3 elem"):
            sides.taken("bank0", letter)


def test_more_elements_than_announced_are_refused_at_the_end():
    sides, _ = opened(IDS[:2], IDS[:5], size=2)
    with pytest.raises(RemoteProtocolError, match="shop sent 99 bytes of alignment elements where 2 elements were"):
        sides.answered("bank0", AlignmentRequest(0, ELEMENT * 3))
    sides.answered("bank0", AlignmentRequest(0, sides.active._own.piece(slice(0, 2))))
    with pytest.raises(RemoteProtocolError, match="shop sent 33 bytes of alignment elements where 0 elements were"):
        sides.answered("bank0", AlignmentRequest(1, ELEMENT))


@pytest.mark.parametrize("number", [1, 7, 2**31 - 1])
def test_a_piece_out_of_turn_is_refused(number):
    sides, request = opened()
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        sides.answered("bank0", msgspec.structs.replace(request, number=number))
    reply = sides.answered("bank0", request)
    with pytest.raises(RemoteProtocolError, match="bank0 sent a piece of the alignment out of turn"):
        sides.taken("bank0", msgspec.structs.replace(reply, number=number))


def test_a_piece_before_the_sizes_is_refused():
    sides = Sides(IDS, IDS)
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        sides.answered("bank0", AlignmentRequest(0, ELEMENT * 3))
    with pytest.raises(RemoteProtocolError, match="bank0 sent a piece of the alignment out of turn"):
        sides.taken("bank0", AlignmentReply(0, ELEMENT * 3, ELEMENT * 3))


def test_a_piece_that_comes_again_is_refused():
    sides, request = opened()
    reply = sides.answered("bank0", request)
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        sides.answered("bank0", request)
    sides.taken("bank0", reply)
    with pytest.raises(RemoteProtocolError, match="bank0 sent a piece of the alignment out of turn"):
        sides.taken("bank0", reply)


def test_a_piece_after_the_last_is_refused():
    sides = Sides(IDS, IDS, size=10).run()
    with pytest.raises(RemoteProtocolError, match="shop sent a piece of the alignment out of turn"):
        sides.answered("bank0", AlignmentRequest(1, ELEMENT))
    with pytest.raises(RemoteProtocolError, match="bank0 sent a piece of the alignment out of turn"):
        sides.taken("bank0", AlignmentReply(1, ELEMENT, ELEMENT))


def test_sizes_told_twice_are_refused():
    sides, _ = opened()
    with pytest.raises(RemoteProtocolError, match="shop sent AlignmentOpening twice"):
        sides.answered("bank0", AlignmentOpening(1))
    with pytest.raises(RemoteProtocolError, match="bank0 sent AlignmentOpened twice"):
        sides.taken("bank0", AlignmentOpened(1))


@pytest.mark.parametrize("size", [4, 2])
def test_an_element_that_comes_twice_is_refused_in_one_piece_and_in_two(size):
    sides, _ = opened(IDS[:4], IDS[:1], size=size)
    with pytest.raises(RemoteProtocolError, match="shop sent the same alignment element twice"):
        for number in range(4 // size):
            sides.answered(
                "bank0", AlignmentRequest(number, (ELEMENT + sides.active._own.piece(slice(1, 2)))[:66] * (size // 2))
            )
    assert not sides.passive["bank0"].is_over


@pytest.mark.parametrize("size", [4, 2])
def test_an_answer_or_an_element_that_stands_for_two_rows_is_refused(size):
    other = Curve().hashed(["y"], new_key())
    for repeats in ("answers", "elements"):
        sides, request = opened(IDS[:4], IDS[:4], size=size)
        with pytest.raises(RemoteProtocolError, match="bank0 sent the same alignment element twice"):
            while request is not None:
                reply = sides.answered("bank0", request)
                reply = msgspec.structs.replace(reply, **{repeats: (ELEMENT + other) * (size // 2)})
                request = sides.taken("bank0", reply)
        with pytest.raises(RemoteProtocolError, match="bank0 sent a piece of the alignment out of turn"):
            sides.taken("bank0", AlignmentReply(4 // size, b"", b""))
        assert "bank0" not in sides.active.matched


def test_a_refused_piece_leaves_the_alignment_where_it_was():
    sides, request = opened()
    with pytest.raises(RemoteProtocolError):
        sides.answered("bank0", AlignmentRequest(0, OFF_CURVE * 3))
    reply = sides.answered("bank0", request)
    with pytest.raises(RemoteProtocolError):
        sides.taken("bank0", AlignmentReply(0, reply.answers, OFF_CURVE * 3))
    request = sides.taken("bank0", reply)
    while request is not None:
        request = sides.taken("bank0", sides.answered("bank0", request))
    assert sides.matched() == sides.expected()


def test_announced_rows_take_no_memory_before_they_come():
    sides = Sides(["a"], ["a"], size=14_000)
    sides.answered("bank0", AlignmentOpening(2**31 - 1))
    request = sides.taken("bank0", AlignmentOpened(2**31 - 1))
    assert len(request.elements) == 33
    assert sides.active.progress() == (0, 2**31)


@settings(max_examples=60)
@given(st.binary(max_size=80), st.integers(0, 3))
def test_alignment_gets_fed_garbage(garbage, number):
    sides, request = opened()
    with suppress(RemoteProtocolError):
        sides.answered("bank0", AlignmentRequest(number, garbage))
    reply = sides.answered("bank0", request)
    with pytest.raises(RemoteProtocolError):
        sides.taken("bank0", AlignmentReply(number, garbage, garbage))
    assert sides.taken("bank0", reply)
