"""From the parties' shares to the embedding: the paper's sum over each group, joined over the groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.protocol.interfaces import Floats
from vfedsec.protocol.roles import Roles
from vfedsec.protocol.secure_layer import ShareFormat

Shares = Mapping[str, Mapping[int, NDArray[Any]]]


class Fusion:
    """The slices of one job."""

    def __init__(self, roles: Roles, numbers: ShareFormat) -> None:
        self._roles = roles
        self._numbers = numbers

    def join(self, shares: Shares, masking_sets: Mapping[int, frozenset[str]]) -> tuple[Floats, tuple[bool, ...]]:
        """The embedding, zeros where a slice is unusable, and which slices are there.

        A slice counts only if its masking set is complete: with one share missing the masks of the others stand in it.
        """
        rows = self._roles.batch_size
        embedding = np.empty((rows, self._roles.width), np.float32)
        present = []
        for index, columns in enumerate(self._roles.slices):
            members = masking_sets.get(index, frozenset())
            usable = len(members) > 1 and all(index in shares.get(party, {}) for party in members)
            present.append(usable)
            if usable:
                total = self._numbers.add([shares[party][index] for party in sorted(members)])
                embedding[:, columns] = self._numbers.values(total).reshape(rows, -1)
            else:
                embedding[:, columns] = 0
        return embedding, tuple(present)
