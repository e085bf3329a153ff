"""Torch's CPU generator, started from a whole secret instead of the 32 bits that `manual_seed` keeps.

First weights are a secret of their party: an aggregator that knew them could solve the first sums it sees for raw
features, and 2**32 candidates are few enough to try. So the whole state of the generator (a Mersenne Twister) is
drawn from the seed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_WORDS = 624
_STATE_BYTES = 5056
_WORDS_AT = slice(24, 24 + 8 * _WORDS)  # behind the seed, two counters and a position; each word fills 8 bytes
_SECOND_WORD_OF_SEED_0 = 1  # x1 = 1812433253 * (x0 ^ x0 >> 30) + 1, with x0 = 0
_lock = threading.Lock()


@contextmanager
def seeded(seed: bytes) -> Iterator[None]:
    """Torch's CPU generator follows the seed inside, and is as before afterwards."""
    with _lock, torch.random.fork_rng(devices=[]):
        # Not `torch.manual_seed`: that one would seed the generators of accelerators too.
        torch.default_generator.manual_seed(0)
        torch.default_generator.set_state(_with_words(torch.default_generator.get_state(), seed))
        yield


def _with_words(state: torch.Tensor, seed: bytes) -> torch.Tensor:
    """A freshly seeded state with all its words replaced. Raises `RuntimeError` where torch keeps it differently."""
    words = state.numpy()[_WORDS_AT].view("<u8")
    if state.numel() != _STATE_BYTES or words[1] != _SECOND_WORD_OF_SEED_0:
        raise RuntimeError(f"torch {torch.__version__} keeps its generator in a form this code does not know")
    digest = hashlib.shake_256(b"vfedsec initial weights\0" + seed).digest(4 * _WORDS)
    words[:] = np.frombuffer(digest, "<u4")
    return state
