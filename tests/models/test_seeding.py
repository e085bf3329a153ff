"""First weights follow the whole seed."""

import numpy as np
import pytest
import torch

from vfedsec.models.seeding import seeded


def draw(seed: bytes) -> torch.Tensor:
    with seeded(seed):
        return torch.rand(700)


def test_the_same_seed_gives_the_same_numbers() -> None:
    assert torch.equal(draw(b"a"), draw(b"a"))


def test_another_seed_gives_other_numbers() -> None:
    assert not torch.equal(draw(b"a"), draw(b"b"))


def test_every_word_of_the_generator_comes_from_the_seed() -> None:
    with seeded(b"a"):
        words = torch.get_rng_state().numpy()[24 : 24 + 624 * 8].view("<u8")
    bits = np.unpackbits(words.astype("<u4").view(np.uint8)).mean()
    assert len(np.unique(words)) > 620
    assert 0.45 < bits < 0.55


def test_the_numbers_are_uniform() -> None:
    assert abs(float(draw(b"a").mean()) - 0.5) < 0.05


def test_the_generator_is_as_before_afterwards() -> None:
    before = torch.get_rng_state()
    draw(b"a")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("place", [0, 3, 4, 31])
def test_every_byte_of_a_seed_counts(place: int) -> None:
    changed = bytearray(32)
    changed[place] = 1
    assert not torch.equal(draw(bytes(32)), draw(bytes(changed)))
