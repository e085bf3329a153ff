"""A stream of uniform bytes from a key and a nonce, as fast as the machine makes them.

AES-256 in counter mode, reached in two ways that give the same bytes: directly, and as AES-GCM of zeros (whose
counter starts at 2 and whose tag is thrown away). Which is faster depends on the CPU, so it is timed once a process.
A (key, nonce) pair must never serve two different messages; `masking` and `envelope` see to that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Protocol

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

NONCE_BYTES = 12
TAG_BYTES = 16
_FIRST_BLOCK = (2).to_bytes(4)  # where GCM's own keystream begins


class Keystream(Protocol):
    """Keyed once, read at many nonces."""

    def __init__(self, key: bytes) -> None: ...

    def fill(self, nonce: bytes, zeros: bytes, buffer: memoryview) -> None:
        """Write the stream at this nonce over the buffer, all but its last `TAG_BYTES`, which are scratch. `zeros` are
        as many as that; whoever fills again and again keeps them."""


class GcmKeystream:
    """AES-GCM of zeros."""

    def __init__(self, key: bytes) -> None:
        self._encrypt_into = AESGCM(key).encrypt_into

    def fill(self, nonce: bytes, zeros: bytes, buffer: memoryview) -> None:
        """See `Keystream`."""
        self._encrypt_into(nonce, zeros, None, buffer)


class CtrKeystream:
    """AES-CTR itself."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = AES(key)

    def fill(self, nonce: bytes, zeros: bytes, buffer: memoryview) -> None:
        """See `Keystream`."""
        encryptor = Cipher(self._algorithm, CTR(nonce + _FIRST_BLOCK)).encryptor()
        encryptor.update_into(zeros, buffer)


@cache
def fastest_keystream(clock: Callable[[], float] = time.perf_counter) -> type[Keystream]:
    """The faster of the two on this CPU; an opening race of about a millisecond."""
    zeros, nonce = bytes(1 << 16), bytes(NONCE_BYTES)
    buffer = memoryview(bytearray(len(zeros) + TAG_BYTES))

    def seconds(kind: type[Keystream]) -> float:
        stream = kind(bytes(32))
        laps = []
        for _ in range(12):
            start = clock()
            stream.fill(nonce, zeros, buffer)
            laps.append(clock() - start)
        return min(laps)

    candidates: tuple[type[Keystream], ...] = (GcmKeystream, CtrKeystream)
    return min(candidates, key=seconds)
