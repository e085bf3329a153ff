"""Elements of the curve, on one core and on several."""

import threading

import private_set_intersection.python as psi
import pytest

from vfedsec.data.curve import ELEMENT_BYTES, Curve, new_key, usable_cores

KEY, OTHER = new_key(), new_key()
IDS = [f"person-{number}" for number in range(1700)]
ONE = Curve()


def library_elements(message):
    return b"".join(message.encrypted_elements)


def test_elements_are_those_of_the_library():
    request = psi.client.CreateFromKey(KEY, True).CreateRequest(IDS[:5])
    assert ONE.hashed(IDS[:5], KEY) == library_elements(request)
    answer = psi.server.CreateFromKey(OTHER, True).ProcessRequest(request)
    assert ONE.raised(library_elements(request), OTHER) == library_elements(answer)


def test_two_exponents_give_the_same_in_either_order():
    assert ONE.raised(ONE.hashed(["x"], KEY), OTHER) == ONE.raised(ONE.hashed(["x"], OTHER), KEY)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 799, 800, 1700])
def test_any_number_of_threads_makes_the_same_elements_in_the_same_order(threads, count):
    curve, ids = Curve(threads), IDS[:count]
    elements = curve.hashed(ids, KEY)
    assert elements == ONE.hashed(ids, KEY)
    assert len(elements) == count * ELEMENT_BYTES
    assert curve.raised(elements, OTHER) == ONE.raised(elements, OTHER)


def test_a_few_elements_start_no_thread(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("a thread was started"))
    assert len(Curve(8).hashed(IDS[:799], KEY)) == 799 * ELEMENT_BYTES
    assert len(ONE.hashed(IDS, KEY)) == len(IDS) * ELEMENT_BYTES


def test_no_thread_outlives_its_work():
    before = threading.active_count()
    Curve(4).hashed(IDS, KEY)
    assert threading.active_count() == before


def test_time_on_other_threads_is_counted():
    curve = Curve(2)
    curve.hashed(IDS, KEY)
    assert 0.005 < curve.seconds_elsewhere < 10


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("place", [0, 1699])
def test_an_element_that_is_not_of_the_curve_is_told_wherever_it_stands(threads, place):
    elements = bytearray(ONE.hashed(IDS, KEY))
    elements[place * ELEMENT_BYTES : (place + 1) * ELEMENT_BYTES] = b"\x02" + b"\xff" * 32
    with pytest.raises(ValueError, match="expected elements of the curve"):
        Curve(threads).raised(bytes(elements), OTHER)


@pytest.mark.parametrize("length", [1, 32, 34, 65])
def test_a_part_of_an_element_is_told(length):
    with pytest.raises(ValueError, match="expected elements of 33 bytes"):
        ONE.raised(bytes(length), KEY)


def test_curves_may_be_used_from_several_threads_at_once():
    expected = ONE.hashed(IDS[:300], KEY)
    found = []
    threads = [threading.Thread(target=lambda: found.append(ONE.hashed(IDS[:300], KEY))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 6


def test_there_is_a_core_to_use():
    assert usable_cores() >= 1
