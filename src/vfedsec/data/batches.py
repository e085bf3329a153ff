"""The active party's choice of rows: which are held out, and which stand in which batch.

All of it follows from the party's secret seed, the ids and the epoch. There is no state, so any
batch can be asked for at any time, and a resumed run sees the batches of the run that was not
interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vfedsec.config.job import Split
from vfedsec.data.ordering import derived_seed, keyed_order, shuffled
from vfedsec.errors import DataError, LocalProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW, BatchKind, Floats, Rows


class TableBatches:
    """Implements `Batches` over aligned rows.

    Rows are reshuffled every epoch, those held out too: whoever sees sums row by row should not find the same row in
    the same place twice. Training batches are full; what does not fill one waits for another epoch, except when there
    are fewer rows than one batch takes. Of all others the last one is padded.
    """

    def __init__(
        self,
        batch_size: int,
        rows_by_kind: Mapping[BatchKind, Rows],
        partners: Mapping[str, Rows],
        *,
        labels: Floats | None = None,
        ids: Sequence[str] = (),
        seed: bytes = b"",
    ) -> None:
        """Of aligned arrays: the rows of each kind; each passive party's row for each of ours.

        Without `labels` all are zero, as for a prediction. `seed` decides the order of rows.
        """
        self._batch_size = batch_size
        self._rows_by_kind = dict(rows_by_kind)
        # One entry more at the end: that is where `ABSENT_ROW`, -1, leads.
        self._partners = {party: np.append(theirs, np.int32(ABSENT_ROW)) for party, theirs in partners.items()}
        self._labels = None if labels is None else np.append(labels, np.float32(0))
        self._ids = tuple(ids)
        self._seed = seed
        self._last_order: tuple[tuple[BatchKind, int], Rows] | None = None

    @classmethod
    def from_split(
        cls,
        batch_size: int,
        split: Split,
        ids: Sequence[str],
        partners: Mapping[str, Rows],
        *,
        labels: Floats,
        seed: bytes,
        stratified: bool,
    ) -> TableBatches:
        """Hold out the fractions that `split` says, of each class alike where `stratified`.

        The same people are held out whatever the order of the rows; without validation rows, the
        test rows stand in for them. Raises `DataError` when no
        training rows remain.
        """
        order = _split_order(ids, labels if stratified else np.zeros_like(labels), seed)
        test_end = round(len(ids) * split.test)
        validation_end = test_end + round(len(ids) * split.validation)
        if validation_end >= len(ids):
            raise DataError(f"holding out {validation_end} rows leaves none of {len(ids)} to train on")
        held_out, validation = order[:test_end], order[test_end:validation_end]
        rows_by_kind: dict[BatchKind, Rows] = {
            "test": held_out,
            "validation": validation if len(validation) else held_out,
            "train": order[validation_end:],
            "predict": np.arange(len(ids), dtype=np.int32),
        }
        return cls(batch_size, rows_by_kind, partners, labels=labels, ids=ids, seed=seed)

    @classmethod
    def for_prediction(
        cls, batch_size: int, ids: Sequence[str], partners: Mapping[str, Rows], *, seed: bytes
    ) -> TableBatches:
        """All rows, without labels and without training."""
        everything: dict[BatchKind, Rows] = {"predict": np.arange(len(ids), dtype=np.int32)}
        return cls(batch_size, everything, partners, ids=ids, seed=seed)

    def count(self, kind: BatchKind) -> int:
        """How many batches one pass over the rows of this kind takes."""
        rows = len(self._of_kind(kind))
        if kind == "train":
            return max(rows // self._batch_size, min(rows, 1))
        return -(-rows // self._batch_size)

    def rows(self, kind: BatchKind, epoch: int, index: int) -> Rows:
        """The rows of one batch, (batch_size,), `ABSENT_ROW` at the end of a short one."""
        if not 0 <= index < self.count(kind):
            raise LocalProtocolError(f"batch {index} of the {kind} rows was asked for; there are {self.count(kind)}")
        chosen = self._order(kind, epoch)[index * self._batch_size : (index + 1) * self._batch_size]
        if len(chosen) == self._batch_size:
            return chosen
        padding = (0, self._batch_size - len(chosen))
        return np.pad(chosen, padding, constant_values=ABSENT_ROW)

    def labels(self, rows: Rows) -> Floats:
        """Their labels (batch,), zeros for `ABSENT_ROW`."""
        if self._labels is None:
            return np.zeros(len(rows), dtype=np.float32)
        return self._labels[rows]

    def class_rows(self, classes: int) -> list[int]:
        """How many training rows each class has, where labels are class numbers below `classes`."""
        numbers = self.labels(self._of_kind("train")).astype(np.int64)
        counts: list[int] = np.bincount(numbers, minlength=classes).tolist()
        return counts

    def partner_rows(self, party: str, rows: Rows) -> Rows:
        """The same rows in that passive party's row numbers, `ABSENT_ROW` where it holds none."""
        return self._partners[party][rows]

    def ids_of(self, rows: Rows) -> list[str]:
        """Whose these rows are, leaving out `ABSENT_ROW`."""
        return [self._ids[row] for row in rows.tolist() if row != ABSENT_ROW]

    def _of_kind(self, kind: BatchKind) -> Rows:
        return self._rows_by_kind.get(kind, np.empty(0, dtype=np.int32))

    def _order(self, kind: BatchKind, epoch: int) -> Rows:
        # Kept for speed alone: the same epoch gives the same order.
        if self._last_order is None or self._last_order[0] != (kind, epoch):
            seed = derived_seed(self._seed, f"order of {kind} rows in epoch {epoch}")
            self._last_order = ((kind, epoch), shuffled(self._of_kind(kind), seed))
        return self._last_order[1]


def _split_order(ids: Sequence[str], classes: Floats, seed: bytes) -> Rows:
    """Row numbers in an order of which every prefix holds each class in its proportion."""
    order = keyed_order(ids, derived_seed(seed, "split"))
    quantile = np.empty(len(order))
    for value in np.unique(classes):
        members = np.flatnonzero(classes[order] == value)
        quantile[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(quantile, kind="stable")]
