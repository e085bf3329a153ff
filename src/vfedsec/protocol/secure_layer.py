"""The Secure Layer of one party: from floats to masked words, and from a group's blinded sum back to floats.

Three modes, one shape: `secure` rounds to fixed point and masks, `insecure-integers` only rounds, `insecure-plain`
does neither. Rounding noise is a party's own, so the numbers are the same with masks and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Job
from vfedsec.crypto.keys import RunContext
from vfedsec.crypto.masking import MaskStream, Scratch
from vfedsec.crypto.pairs import Pair, derive
from vfedsec.crypto.prg import fastest_keystream
from vfedsec.errors import LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.interfaces import Floats
from vfedsec.quantization import FixedPoint, NumberPlan, RoundingNoise, plan

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_PLAIN = np.dtype("<f4")


class ShareFormat:
    """How the shares of a sum are carried, added and read in one mode."""

    def __init__(self, mode: str, numbers: FixedPoint) -> None:
        self.numbers = numbers
        self.is_plain = mode == "insecure-plain"
        self.dtype: np.dtype[Any] = _PLAIN if self.is_plain else numbers.words

    def read(self, raw: memoryview | bytes, count: int) -> NDArray[Any]:
        """A share off the wire. Raises `RemoteProtocolError` unless it has exactly `count` words."""
        if len(raw) != count * self.dtype.itemsize:
            raise RemoteProtocolError(f"expected a share of {count * self.dtype.itemsize} bytes, got {len(raw)}")
        return np.frombuffer(raw, self.dtype)

    def add(self, shares: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The sum of shares; in a ring the masks are gone from it."""
        if len(shares) == 1:
            return shares[0]
        total: NDArray[Any] = shares[0] + shares[1]
        for share in shares[2:]:
            total += share
        return total

    def values(self, total: NDArray[Any]) -> Floats:
        """What a sum stands for."""
        return total if self.is_plain else self.numbers.decode(total)


class ShareFormats:
    """The two formats of a job: for embeddings, and for a group's parameter gradients."""

    def __init__(self, job: Job) -> None:
        numbers: NumberPlan = plan(job)
        self.mode = job.security.mode
        self.embedding = ShareFormat(self.mode, numbers.embedding)
        self.update = ShareFormat(self.mode, numbers.update)


class SecureLayer:
    """What one party does to its numbers before they leave it."""

    def __init__(self, job: Job, private_seed: bytes, clock: Callable[[], float]) -> None:
        self.formats = ShareFormats(job)
        self.masks = self.formats.mode == "secure"
        self.scratch = Scratch()
        self.seconds = 0.0
        self.rounded = 0
        """Values that were rounded to words; none in the plain mode."""
        self.clipped = 0
        """How many of them had to be clipped. The owner's to know: the count does not travel."""
        self._clock = clock
        self._forward_noise = self._noise(private_seed, "forward", self.formats.embedding)
        self._update_noise = self._noise(private_seed, "update", self.formats.update)

    def share(self, values: Floats, round_index: int, slice_index: int, pairs: Iterable[Pair]) -> NDArray[Any]:
        """This party's share of a slice. Without a partner it is refused."""
        start = self._clock()
        pairs = tuple(pairs)
        if not pairs:
            raise LocalProtocolError(f"slice {slice_index} of round {round_index} has no partner: not sent")
        words = self._round(values, self.formats.embedding, self._forward_noise, round_index, slice_index)
        if self.masks:
            for pair in pairs:
                pair.forward_masks().mask(words, round_index, slice_index, add=pair.adds)
        self.seconds += self._clock() - start
        return words

    def blind(self, gradient: Floats, round_index: int, pairs: Iterable[Pair], own_blind: MaskStream) -> NDArray[Any]:
        """This party's share of the group's summed gradient, under the pairs' masks and the group's own."""
        start = self._clock()
        words = self._round(gradient, self.formats.update, self._update_noise, round_index, 0)
        if self.masks:
            own_blind.mask(words, round_index, 0, add=True)
            for pair in pairs:
                pair.update_masks().mask(words, round_index, 0, add=pair.adds)
        self.seconds += self._clock() - start
        return words

    def unblind(self, raw: memoryview, size: int, round_index: int, blinds: Iterable[MaskStream]) -> Floats:
        """The group's summed gradient, from the sum that the aggregator sent back."""
        start = self._clock()
        total = self.formats.update.read(raw, size).copy()
        if self.masks:
            for blind in blinds:
                blind.combine(total, round_index, 0, add=False)
        values = self.formats.update.values(total)
        self.seconds += self._clock() - start
        return values

    def timed(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Do other work of the layer (keys, envelopes) on its clock."""
        start = self._clock()
        try:
            return work(*args, **kwargs)
        finally:
            self.seconds += self._clock() - start

    def _round(
        self, values: Floats, how: ShareFormat, noise: RoundingNoise, round_index: int, slice_index: int
    ) -> NDArray[Any]:
        if how.is_plain:
            return np.ascontiguousarray(values, _PLAIN)
        words, clipped = how.numbers.encode(values, noise.window(round_index, slice_index, values.size))
        self.rounded += values.size
        self.clipped += clipped
        return words

    @staticmethod
    def _noise(private_seed: bytes, purpose: str, how: ShareFormat) -> RoundingNoise:
        stream = fastest_keystream()(derive(private_seed, "rounding", purpose))
        return RoundingNoise(stream, how.numbers.fraction_bits)


class GroupBlinds:
    """The masks that only the members of one group know: the aggregator's sum is noise to it.

    A stream belongs to a member and one of its ephemeral keys. So it is new after every greeting and every restart,
    and what was blinded before can not be blinded again, whatever rounds the aggregator names.
    """

    def __init__(self, secret: bytes, context: RunContext, group: str, scratch: Scratch) -> None:
        self.secret = secret
        self.context = context
        self._info = (context.run_id, context.incarnation, group)
        self._scratch = scratch
        self._streams: dict[tuple[str, bytes], MaskStream] = {}

    def of(self, party: str, key_id: bytes) -> MaskStream:
        """The masks that a member adds while it uses this key."""
        stream = self._streams.pop((party, key_id), None)
        if stream is None:
            key = derive(self.secret, "blind", party, key_id, *self._info)
            stream = MaskStream(key, self._scratch)
        self._streams[party, key_id] = stream  # the last used last
        return stream

    def forget_all_but(self, count: int) -> None:
        """Keep the streams used last."""
        while len(self._streams) > count:
            del self._streams[next(iter(self._streams))]

    def __repr__(self) -> str:
        return "GroupBlinds(secret=<redacted>)"
