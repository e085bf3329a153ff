"""What the aggregator accepts of a round's replies. A reply that is not well formed counts as none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Job
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol import messages as m
from vfedsec.protocol.interfaces import Floats
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormats


class Incoming:
    """Reads shares, labels and updates."""

    def __init__(self, job: Job, roles: Roles, formats: ShareFormats) -> None:
        self._job = job
        self._roles = roles
        self._formats = formats

    def shares(
        self, party: str, reply: m.Share, round_index: int, expected: set[int], *, labelled: bool
    ) -> dict[int, NDArray[Any]]:
        """A party's share of each slice it was asked for. Raises `RemoteProtocolError` for anything else."""
        if reply.round_index != round_index or set(reply.slices) != expected:
            raise RemoteProtocolError(
                f"expected the share of {party} for round {round_index} and slices {sorted(expected)}, got one for "
                f"round {reply.round_index} and {sorted(reply.slices)}"
            )
        if party == self._roles.active:
            self._check_rows(reply, labelled)
        rows = self._roles.batch_size
        read = self._formats.embedding.read
        return {index: read(raw, rows * self._roles.slice_width(index)) for index, raw in reply.slices.items()}

    def _check_rows(self, reply: m.Share, labelled: bool) -> None:
        if not 0 < reply.valid <= self._roles.batch_size or (reply.labels is not None) != labelled:
            raise RemoteProtocolError(f"expected a batch with rows{' and labels' * labelled}")
        if reply.labels is not None:
            self._check_labels(self.labels(reply))

    def class_rows(self, reply: m.Ready) -> list[int]:
        """How many training rows each class has. Raises `RemoteProtocolError` when that cannot be, or when the job
        does not ask for it."""
        task = self._job.task
        expected = task.class_count if task.is_balanced else 0
        if len(reply.class_rows) != expected or (expected and not any(reply.class_rows)):
            found = f"{len(reply.class_rows)} counts of {sum(reply.class_rows)} rows"
            raise RemoteProtocolError(f"expected training rows of {expected} classes, got {found}")
        return reply.class_rows

    def labels(self, reply: m.Share) -> Floats:
        """The labels of the batch, (batch,)."""
        if reply.labels is None or len(reply.labels) != 4 * self._roles.batch_size:
            raise RemoteProtocolError(f"expected {self._roles.batch_size} labels")
        return np.frombuffer(reply.labels, "<f4")

    def _check_labels(self, labels: Floats) -> None:
        classes = self._job.task.class_count
        if not np.isfinite(labels).all() or (
            classes and not ((labels >= 0) & (labels < classes) & (labels == np.floor(labels))).all()
        ):
            raise RemoteProtocolError("expected labels that are classes of the task")

    def sum_of(self, members: list[str], replies: Mapping[str, m.UpdateShare], round_index: int) -> memoryview | None:
        """The blinded sum of a group (6b), if every member's share is there and of one length."""
        if any(member not in replies for member in members):
            return None
        shares = [replies[member] for member in members]
        dtype = self._formats.update.dtype
        if len({len(share.words) for share in shares}) != 1 or len(shares[0].words) % dtype.itemsize:
            return None
        if any(share.round_index != round_index for share in shares):
            return None
        words = [np.frombuffer(share.words, dtype) for share in shares]
        return np.ascontiguousarray(self._formats.update.add(words)).data
