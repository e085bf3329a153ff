"""The elliptic curve of the alignment (OpenMined PSI): ids hashed to it, and elements raised to a secret exponent.

The library lets other threads run while it computes, so threads are enough to use every core. One of its objects may
not be used by two threads at once: every share of the work makes its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import private_set_intersection.python as psi

ELEMENT_BYTES = 33
"""A compressed point."""

_WORTH_A_THREAD = 400
"""Elements, some 20 ms of work."""


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def new_key() -> bytes:
    """A fresh secret exponent.

    The rows that match do not depend on it, and it is never to leave the process.
    """
    key: bytes = psi.client.CreateWithNewKey(True).GetPrivateKeyBytes()
    return key


class Curve:
    """Works with up to so many threads, that of the caller among them."""

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self.seconds_elsewhere = 0.0
        """CPU time of all threads but the caller's."""

    def hashed(self, ids: Sequence[str], key: bytes) -> bytes:
        """The elements of these ids, one behind the other, raised to the key."""

        def share(start: int, stop: int) -> bytes:
            return _joined(psi.client.CreateFromKey(key, True).CreateRequest(list(ids[start:stop])))

        return self._spread(len(ids), share)

    def raised(self, elements: bytes, key: bytes) -> bytes:
        """Each of these elements raised to the key, in their order. Raises `ValueError` where one is not of the
        curve."""

        def share(start: int, stop: int) -> bytes:
            places = range(start * ELEMENT_BYTES, stop * ELEMENT_BYTES, ELEMENT_BYTES)
            request = psi.Request(
                reveal_intersection=True,
                encrypted_elements=[elements[place : place + ELEMENT_BYTES] for place in places],
            )
            try:
                return _joined(psi.server.CreateFromKey(key, True).ProcessRequest(request))
            except RuntimeError:
                raise ValueError("expected elements of the curve") from None

        if len(elements) % ELEMENT_BYTES:
            raise ValueError(f"expected elements of {ELEMENT_BYTES} bytes")
        return self._spread(len(elements) // ELEMENT_BYTES, share)

    def _spread(self, count: int, share: Callable[[int, int], bytes]) -> bytes:
        """What `share` makes of `range(count)`, cut into one share a thread."""
        threads = max(min(self._threads, count // _WORTH_A_THREAD), 1)
        (_, first), *others = pairwise(count * thread // threads for thread in range(threads + 1))
        if not others:
            return share(0, count) if count else b""
        with ThreadPoolExecutor(len(others)) as pool:
            running = [pool.submit(_timed, share, *ends) for ends in others]
            made = [share(0, first)]
            for future in running:
                part, seconds = future.result()
                self.seconds_elsewhere += seconds
                made.append(part)
        return b"".join(made)


def _timed(share: Callable[[int, int], bytes], start: int, stop: int) -> tuple[bytes, float]:
    since = time.thread_time()
    part = share(start, stop)
    return part, time.thread_time() - since


def _joined(message: psi.Request | psi.Response) -> bytes:
    return b"".join(message.encrypted_elements)
