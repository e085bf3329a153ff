"""Orders that a secret seed decides, without state and whatever the order of a table."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import numpy as np

from vfedsec.protocol.interfaces import Rows


def derived_seed(seed: bytes, purpose: str) -> bytes:
    """32 bytes for one purpose, which tell nothing of the seed or of those for other purposes."""
    return hmac.digest(seed, purpose.encode(), "sha256")


def keyed_order(ids: Sequence[str], seed: bytes) -> Rows:
    """All row numbers, sorted by a keyed hash of the row's id. `seed` has at most 64 bytes."""
    digests = [hashlib.blake2b(i.encode(), digest_size=16, key=seed).digest() for i in ids]
    return np.array(sorted(range(len(ids)), key=digests.__getitem__), dtype=np.int32)


def shuffled(rows: Rows, seed: bytes) -> Rows:
    """The same rows in an order drawn from the seed."""
    key = int.from_bytes(hashlib.blake2b(seed, digest_size=16).digest(), "little")
    draws = np.random.Philox(key=key).random_raw(len(rows))
    return rows[np.argsort(draws, kind="stable")]
