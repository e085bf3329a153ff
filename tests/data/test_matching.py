"""Equal elements of two lists, against a dict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfedsec.data.matching import Elements, places
from vfedsec.protocol.interfaces import ABSENT_ROW

# Few different bytes, so that beginnings are shared, and zeros at the end, which texts of a fixed length do not show.
ELEMENTS = st.lists(
    st.lists(st.sampled_from([0, 1, 255]), min_size=16, max_size=16).map(lambda kept: bytes([2, *kept]) + bytes(16)),
    unique=True,
    max_size=30,
)


def elements_of(*pieces):
    elements = Elements()
    for piece in pieces:
        elements.add(b"".join(piece))
    return elements


@given(ELEMENTS, ELEMENTS, st.integers(0, 30))
def test_places_are_those_of_a_dict(wanted, given_ones, cut):
    found = places(elements_of(wanted), elements_of(given_ones[:cut], given_ones[cut:]))
    rows = {one: row for row, one in enumerate(given_ones)}
    assert found.tolist() == [rows.get(one, ABSENT_ROW) for one in wanted]
    assert found.dtype == "int32"


@given(ELEMENTS.filter(bool), st.data())
def test_a_repeat_is_noticed_wherever_it_stands(elements, data):
    assert elements_of(elements).are_different()
    repeated = [*elements, data.draw(st.sampled_from(elements))]
    assert not elements_of(repeated).are_different()
    with pytest.raises(ValueError, match="expected each element once"):
        places(elements_of([]), elements_of(repeated))


def test_elements_that_differ_in_their_last_kept_byte_only_are_different():
    one, other = (bytes([2]) + bytes(15) + bytes([last]) + bytes(16) for last in (0, 1))
    assert places(elements_of([one]), elements_of([other])).tolist() == [ABSENT_ROW]


def test_a_list_knows_its_length():
    assert len(elements_of([bytes(33), bytes(33)], [bytes(33)])) == 3
