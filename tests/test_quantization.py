"""Fixed point, and the proof that sums stay inside the ring."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import Drbg, job_of
from vfedsec.crypto.prg import CtrKeystream, GcmKeystream
from vfedsec.errors import DataError, QuantizationOverflow
from vfedsec.quantization import FixedPoint, RoundingNoise, most_bits, plan

DEFAULT = FixedPoint(4.0, 27, 32)
NARROW = FixedPoint(4.0, 14, 16)
FORMATS = st.builds(
    lambda clip, bits, word: FixedPoint(clip, min(bits, word - 2), word),
    st.sampled_from([0.5, 1.0, 3.0, 4.0, 100.0]),
    st.integers(2, 29),
    st.sampled_from([16, 32]),
)
VALUES = st.lists(st.floats(-150, 150, width=32), min_size=1, max_size=40)


def noise(numbers, count, seed=0):
    return RoundingNoise(CtrKeystream(Drbg(seed)(32)), numbers.fraction_bits).window(0, 0, count)


def encoded(numbers, values, seed=0):
    values = np.asarray(values, np.float32)
    words, clipped = numbers.encode(values, noise(numbers, values.size, seed))
    return words, clipped


def in_ring(words):
    """The sum, without leaving the words' own type."""
    return np.add.reduce(words, dtype=words[0].dtype)


# -- one value --


@given(FORMATS, VALUES)
def test_a_value_comes_back_within_one_step(numbers, values):
    words, _ = encoded(numbers, values)
    expected = np.clip(np.float64(values), -numbers.clip, numbers.clip)
    step = 1 / float(numbers.scale)
    assert np.abs(numbers.decode(words) - expected).max() <= step * 1.001 + 1e-6 * numbers.clip


@given(FORMATS, VALUES)
def test_no_word_is_larger_than_the_limit_that_the_plan_reckons_with(numbers, values):
    words, _ = encoded(numbers, values)
    signed = words.view(numbers.signed).astype(np.int64)
    assert np.abs(signed).max() <= 2 ** (numbers.range_bits - 1)


@pytest.mark.parametrize("numbers", [DEFAULT, NARROW, FixedPoint(3.0, 20, 32)], ids=str)
def test_the_ends_of_the_range_become_the_limit(numbers):
    words, clipped = encoded(numbers, [numbers.clip, -numbers.clip] * 50)
    assert set(words.view(numbers.signed).tolist()) == {2 ** (numbers.range_bits - 1), -(2 ** (numbers.range_bits - 1))}
    assert clipped == 0


@pytest.mark.parametrize("clip", [35.9, 34.4, 30.6])
def test_no_word_is_larger_either_where_the_scale_is_rounded_up(clip):
    """There the product of clip and scale lies above the limit."""
    numbers = FixedPoint(clip, 27, 32)
    words, _ = encoded(numbers, [clip, -clip] * 50)
    assert np.abs(words.view(numbers.signed).astype(np.int64)).max() <= 2**26


@given(FORMATS, VALUES)
def test_clipped_values_are_counted(numbers, values):
    values = np.float32(values)
    beyond = np.abs(values * numbers.scale) > numbers.limit
    assert encoded(numbers, values)[1] == np.count_nonzero(beyond)


@given(FORMATS, st.integers(1, 50))
def test_zero_is_exactly_zero_whatever_the_noise(numbers, seed):
    words, _ = encoded(numbers, np.zeros(64), seed)
    assert not words.any()


@pytest.mark.parametrize("numbers", [DEFAULT, NARROW, FixedPoint(4.0, 20, 32)], ids=str)
@pytest.mark.parametrize("value", [0.3, -0.3, 1e-4, -1e-4, 3.99, -3.99])
def test_rounding_is_right_on_average(numbers, value):
    count = 20_000
    words, _ = encoded(numbers, np.full(count, value))
    exact = float(np.float32(value)) * 2**numbers.range_bits / 8
    mean = words.view(numbers.signed).astype(np.float64).mean()
    deviation = 6 * 0.5 / count**0.5
    assert abs(mean - exact) < deviation + 2.0**-numbers.fraction_bits


@pytest.mark.parametrize("numbers", [DEFAULT, NARROW], ids=str)
@given(VALUES)
def test_a_value_is_rounded_up_or_down_by_less_than_one(numbers, values):
    words, _ = encoded(numbers, values)
    fine = np.clip(np.float32(values), -numbers.clip, numbers.clip) * numbers.scale
    assert (np.abs(words.view(numbers.signed) - np.float64(fine)) <= 1).all()


@pytest.mark.parametrize("value", [1e31, -3e38, 1e20])
def test_a_value_far_beyond_the_range_is_clipped_as_any_other(value):
    words, clipped = encoded(DEFAULT, [value, 1.0])
    assert DEFAULT.decode(words)[0] == np.copysign(4.0, value)
    assert clipped == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(DataError, match="not finite"):
        encoded(DEFAULT, [0.5, value])


def test_an_empty_array_stays_empty():
    words, clipped = encoded(DEFAULT, np.empty((0, 3)))
    assert words.shape == (0, 3)
    assert clipped == 0


@pytest.mark.parametrize(("numbers", "size"), [(DEFAULT, 4), (NARROW, 2)])
def test_words_are_unsigned_little_endian_and_as_wide_as_the_job_says(numbers, size):
    words, _ = encoded(numbers, [-1.0])
    assert words.dtype == np.dtype(f"<u{size}")
    assert numbers.decode(words) == np.float32(-1)


# -- noise --


@pytest.mark.parametrize("bits", [0, 1, 4, 16])
def test_noise_is_uniform_over_the_fraction(bits):
    window = RoundingNoise(CtrKeystream(Drbg(bits)(32)), bits).window(5, 1, 1 << 18)
    counts = np.bincount(window, minlength=1 << bits)
    assert len(counts) == 1 << bits
    assert np.abs(counts - counts.mean()).max() <= 6 * counts.mean() ** 0.5


def test_noise_follows_from_seed_round_and_slice_whatever_was_asked_before():
    one, two = RoundingNoise(GcmKeystream(bytes(32)), 4), RoundingNoise(CtrKeystream(bytes(32)), 4)
    two.window(0, 0, 5)
    two.window(9, 2, 5000)
    assert np.array_equal(one.window(3, 1, 100), two.window(3, 1, 100))
    other = RoundingNoise(CtrKeystream(Drbg()(32)), 4)
    for differs in (one.window(4, 1, 100), one.window(3, 2, 100), other.window(3, 1, 100)):
        assert not np.array_equal(one.window(3, 1, 100), differs)


def test_near_rounds_and_slices_share_no_window():
    noise = RoundingNoise(CtrKeystream(Drbg()(32)), 16)
    windows = {noise.window(r, s, 16).tobytes() for r in range(200) for s in range(8)}
    assert len(windows) == 200 * 8


# -- the paper's map --


@given(st.integers(-(2**23), 2**23), st.sampled_from([1.0, 4.0]), st.integers(4, 14), st.integers(0, 2**32 - 1))
def test_the_papers_q_is_this_map_shifted_by_half_the_range(thousandth, t, range_bits, noise_word):
    numbers = FixedPoint(t, range_bits, 16)
    fine = 2**numbers.fraction_bits
    size = 2**range_bits
    x = Fraction(thousandth) * 2 * Fraction(t) / (size * fine)
    clipped = max(min(x, Fraction(t)), -Fraction(t))
    up = Fraction(noise_word % fine, fine)
    q = floor((clipped + Fraction(t)) / (2 * Fraction(t)) * size + up)

    words, _ = numbers.encode(np.float32([float(x)]), np.int32([noise_word % fine]))
    signed = int(words.view(numbers.signed)[0])
    assert q == signed + size // 2


@given(st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=6))
def test_the_papers_inverse_of_a_sum_is_this_inverse(values):
    """q^-1 takes t away once, so n shifted numbers need n t taken away: the same as adding signed ones."""
    numbers, size, t = DEFAULT, 2**27, 4
    words = [encoded(numbers, [value], seed)[0] for seed, value in enumerate(values)]
    shifted = sum(int(word.view(np.int32)[0]) + size // 2 for word in words)
    inverse = Fraction(2 * t, size) * shifted - t * len(values)
    total = in_ring(words)
    decoded = numbers.decode(total)[0]
    assert abs(float(inverse) - float(decoded)) <= np.spacing(np.abs(decoded)) + 2**-24


@given(st.lists(VALUES, min_size=2, max_size=5), st.sampled_from([16, 32]))
def test_the_sum_of_words_is_the_sum_of_signed_integers(columns, word_bits):
    numbers = FixedPoint(4.0, most_bits(word_bits, len(columns)), word_bits)
    length = min(map(len, columns))
    words = [encoded(numbers, column[:length], seed)[0] for seed, column in enumerate(columns)]
    exact = sum(word.view(numbers.signed).astype(np.int64) for word in words)
    assert np.array_equal(in_ring(words).view(numbers.signed), exact)


# -- the plan --


@given(st.sampled_from([16, 32]), st.integers(1, 500))
def test_most_bits_is_the_largest_range_that_cannot_overflow(word_bits, contributors):
    bits = most_bits(word_bits, contributors)
    half = 2 ** (word_bits - 1)
    assert contributors * 2**bits < 2 * half
    assert contributors * 2 ** (bits + 1) >= 2 * half


@pytest.mark.parametrize("word_bits", [16, 32])
@pytest.mark.parametrize("fusion", ["concat", "sum"])
@pytest.mark.parametrize("groups", [(1,), (1, 1), (2, 1), (5,), (3, 3, 3)])
def test_the_planned_sum_of_all_contributors_fits_the_ring(word_bits, fusion, groups):
    numbers = plan(job_of(groups, fusion=fusion, word_bits=word_bits))
    contributors = 1 + (sum(groups) if fusion == "sum" else max(groups))
    for planned, count in ((numbers.embedding, contributors), (numbers.update, max(groups))):
        for sign in (1, -1):
            words = [encoded(planned, [1e9 * sign], seed)[0] for seed in range(count)]
            total = in_ring(words).view(planned.signed)[0]
            assert int(total) == sign * count * 2 ** (planned.range_bits - 1)


def test_the_default_range_is_the_papers():
    numbers = plan(job_of()).embedding
    assert (numbers.clip, numbers.range_bits, numbers.word_bits) == (4.0, 27, 32)


@pytest.mark.parametrize("members", [2, 31, 32, 40, 100])
def test_the_sum_of_a_groups_updates_fits_its_words(members):
    update = plan(job_of((members,), security={"range_bits": 16})).update
    assert members * 2 ** (update.range_bits - 1) < 2 ** (update.word_bits - 1)


def test_narrow_words_take_the_largest_range_that_fits():
    assert plan(job_of((1,), word_bits=16)).embedding.range_bits == most_bits(16, 2)


@pytest.mark.parametrize(("word_bits", "allowed"), [(16, 14), (32, 30)])
def test_a_range_that_could_overflow_is_refused_by_name(word_bits, allowed):
    job = job_of((2, 1), word_bits=word_bits, security={"range_bits": allowed + 1})
    with pytest.raises(QuantizationOverflow, match=rf"\[security.range_bits\]: expected at most {allowed}, found"):
        plan(job)
    fine = job_of((2, 1), word_bits=word_bits, security={"range_bits": allowed})
    assert plan(fine).embedding.range_bits == allowed


def test_the_refusal_says_that_wider_words_would_help_only_where_there_are_some():
    with pytest.raises(QuantizationOverflow, match=r"word_bits = 32"):
        plan(job_of(word_bits=16, security={"range_bits": 15}))
    with pytest.raises(QuantizationOverflow) as caught:
        plan(job_of(security={"range_bits": 31}))
    assert "word_bits" not in str(caught.value)


def test_all_parties_count_where_all_share_one_slice():
    bits = {"range_bits": 30}
    assert plan(job_of((1, 1, 1), security=bits)).embedding.range_bits == 30
    with pytest.raises(QuantizationOverflow, match="4 parties"):
        plan(job_of((1, 1, 1), fusion="sum", security=bits))
