"""What each party sends in a training round when everybody is there, worked out from the job alone.

Only what grows with the batch or the network is counted: frames, signatures and new keys come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

from vfedsec.config.job import Job
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormats

_ROW_BYTES = _LABEL_BYTES = 4


@dataclass(frozen=True)
class Traffic:
    """One party's bytes up in a round."""

    embedding: int
    """Words of the masked embedding."""
    labels: int = 0
    """The active party's alone."""
    row_numbers: int = 0
    """Sealed for every passive party; the active party's alone."""
    sends_update: bool = False
    """Whether four bytes a parameter of its bottom model come on top, to be summed blindly in its group."""

    @property
    def total(self) -> int:
        """Without the update, whose size is known once the columns are encoded."""
        return self.embedding + self.labels + self.row_numbers


def traffic(job: Job) -> dict[str, Traffic]:
    """By party, the active one first."""
    roles = Roles(job)
    rows = job.training.batch_size
    word = ShareFormats(job).embedding.dtype.itemsize
    active = Traffic(
        rows * roles.width * word, labels=rows * _LABEL_BYTES, row_numbers=len(roles.passive) * rows * _ROW_BYTES
    )
    passive = {
        party: Traffic(rows * roles.slice_width(roles.slice_of(party)) * word, sends_update=roles.is_replicated(party))
        for party in roles.passive
    }
    return {roles.active: active, **passive}
