"""The conversation before the first round: who shares which rows, and how columns are encoded.

The active party aligns its rows with each passive party's (`alignment`). Passive parties of one group agree on one
encoder (`agreement`). A passive party keeps its features in the secret order of its alignment, so the row numbers the
active party holds are its own.

Where two parties of one group hold the same person, the row of the party that the group lists first counts. Encodings
are fitted on all rows of a table, since a passive party does not learn which of them are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Group, Job
from vfedsec.data.agreement import GroupAgreement, GroupLetter
from vfedsec.data.alignment import ActiveAlignment, PassiveAlignment
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.batches import TableBatches
from vfedsec.data.curve import Curve
from vfedsec.data.encoding import Encoder
from vfedsec.data.labels import encode_labels
from vfedsec.data.letters import read, write
from vfedsec.data.ordering import derived_seed
from vfedsec.data.pieces import rows_a_piece
from vfedsec.data.prepared import BuildModel
from vfedsec.data.remembering import Memory, OrderMemory, PlacesMemory, Records
from vfedsec.data.summaries import summarise
from vfedsec.data.table import Table
from vfedsec.errors import DataError, LocalProtocolError, RemoteProtocolError
from vfedsec.protocol.interfaces import ABSENT_ROW, Batches, BottomModel, Mail, Rows


class ActivePreparation:
    """The active party's side: implements `Preparation`.

    Raises `DataError` at a cell that is not of its column's kind, or a label that the task does not know.
    """

    def __init__(
        self,
        job: Job,
        table: Table,
        private_seed: bytes,
        build_model: BuildModel,
        *,
        curve: Curve | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Without a `memory`, nothing is remembered of the alignment."""
        self._job = job
        self._table = table
        self._seed = private_seed
        self._build_model = build_model
        self._encoder = Encoder(summarise(table, job.active.columns), category_cap=job.encoding.category_cap)
        self._labels = None if table.label is None else encode_labels(table, job.task)
        remembered = PlacesMemory(table.ids, _records(memory, table, job))
        piece = rows_a_piece(len(job.passive_parties))
        self._alignment = ActiveAlignment(table.ids, job.passive_parties, piece, curve or Curve(), remembered)

    def begin(self) -> Mail:
        """The first letter of an alignment to every passive party."""
        return [(party, write(letter)) for party, letter in self._alignment.begin().items()]

    def receive(self, sender: str, body: bytes) -> Mail:
        """Take a passive party's part of the alignment. Raises `RemoteProtocolError` for anything else."""
        letter = read(sender, body)
        if sender in self._job.passive_parties and isinstance(letter, AlignmentOpened):
            request = self._alignment.open(sender, letter)
        elif sender in self._job.passive_parties and isinstance(letter, AlignmentReply):
            request = self._alignment.take(sender, letter)
        else:
            raise _unexpected(sender, letter)
        return [(sender, write(request))] if request else []

    def progress(self) -> tuple[int, int]:
        """Of the alignment: how many rows of both sides have been compared, and how many there are."""
        return self._alignment.progress()

    def finish(self, model_seed: bytes) -> tuple[BottomModel, Batches | None]:
        """The model and the batches.

        Raises `DataError` when a reply is missing or no row is left.
        """
        silent = [party for party in self._job.passive_parties if party not in self._alignment.matched]
        _check_nobody_silent(self._table, silent)
        partners, keep = self._joined()
        batches = self._batches({party: rows[keep] for party, rows in partners.items()}, keep)
        features = self._encoder.transform(self._table, keep.astype(np.int32))
        model = self._build_model(features, self._job.embedding_width, self._job.active.model, model_seed)
        return model, batches

    def _joined(self) -> tuple[dict[str, Rows], NDArray[np.intp]]:
        """The partners' rows, one holder a group, and which of our rows to keep."""
        partners: dict[str, Rows] = {}
        keep = np.ones(len(self._table), dtype=np.bool_)
        for group in self._job.groups:
            partners |= first_holders({party: self._alignment.matched[party] for party in group.parties})
            if self._job.alignment.join == "inner":
                keep &= np.any([partners[p] != ABSENT_ROW for p in group.parties], axis=0)
        if not keep.any():
            raise self._table.error(self._nothing_shared())
        return partners, np.flatnonzero(keep)

    def _nothing_shared(self) -> str:
        matched = self._alignment.matched
        shared = ", ".join(
            f"{party} has {np.count_nonzero(matched[party] != ABSENT_ROW)}" for party in self._job.passive_parties
        )
        return f"no row is shared with every group: of {len(self._table)} rows, {shared}"

    def _batches(self, partners: Mapping[str, Rows], keep: NDArray[np.intp]) -> TableBatches:
        size = self._job.training.batch_size
        ids = [self._table.ids[row] for row in keep.tolist()]
        seed = derived_seed(self._seed, "batches")
        if self._labels is None:
            return TableBatches.for_prediction(size, ids, partners, seed=seed)
        return TableBatches.from_split(
            size,
            self._job.split,
            ids,
            partners,
            labels=self._labels[keep],
            seed=seed,
            stratified=self._job.task.kind != "regression",
        )


class PassivePreparation:
    """A passive party's side: implements `Preparation`.

    Raises `DataError` at a cell that is not of its column's kind.
    """

    def __init__(
        self,
        job: Job,
        party_name: str,
        table: Table,
        private_seed: bytes,
        build_model: BuildModel,
        entropy: Callable[[int], bytes],
        *,
        curve: Curve | None = None,
        memory: Memory | None = None,
    ) -> None:
        """`entropy` gives fresh random bytes, for the masks of the group's sums. Without a `memory`, nothing is
        remembered of the alignment, by the active party either."""
        self._job = job
        self._group = _group_of(job, party_name)
        self._table = table
        self._build_model = build_model
        seed, active = derived_seed(private_seed, "row order"), job.active.party
        remembered = OrderMemory(table.ids, seed, _records(memory, table, job), active)
        piece = rows_a_piece(len(job.passive_parties))
        self._alignment = PassiveAlignment(table.ids, active, piece, curve or Curve(), remembered)
        self._agreement = GroupAgreement(self._group, party_name, summarise(table, self._group.columns), entropy)

    def begin(self) -> Mail:
        """To the other parties of the group: how this one reads its columns."""
        return self._agreement.begin()

    def receive(self, sender: str, body: bytes) -> Mail:
        """Answer the active party's part of the alignment, or a letter of the group.

        Raises `RemoteProtocolError` for anything else, and `DataError` when the group's kinds do not go together.
        """
        letter = read(sender, body)
        if sender == self._job.active.party and isinstance(letter, AlignmentOpening):
            return [(sender, write(self._alignment.open(letter)))]
        if sender == self._job.active.party and isinstance(letter, AlignmentRequest):
            return [(sender, write(self._alignment.answer(letter)))]
        if isinstance(letter, GroupLetter):
            return self._agreement.receive(sender, letter)
        raise _unexpected(sender, letter)

    def progress(self) -> tuple[int, int]:
        """Of the alignment: how many rows of both sides have been compared, and how many there are."""
        return self._alignment.progress()

    def finish(self, model_seed: bytes) -> tuple[BottomModel, Batches | None]:
        """The model on the features in secret order.

        Raises `DataError` when a letter is missing.
        """
        unaligned = [] if self._alignment.is_over else [self._job.active.party]
        _check_nobody_silent(self._table, [*unaligned, *self._agreement.silent()])
        encoder = Encoder(self._agreement.summaries(), category_cap=self._job.encoding.category_cap)
        features = encoder.transform(self._table, self._alignment.order)
        width, spec = self._group.width, self._group.model
        return self._build_model(features, width, spec, model_seed), None


def first_holders(rows_by_party: Mapping[str, Rows]) -> dict[str, Rows]:
    """The same maps with each row left to the first party that holds it."""
    result: dict[str, Rows] = {}
    taken: NDArray[np.bool_] | None = None
    for party, rows in rows_by_party.items():
        mine = rows if taken is None else np.where(taken, np.int32(ABSENT_ROW), rows)
        result[party] = mine
        held = mine != ABSENT_ROW
        taken = held if taken is None else taken | held
    return result


def _records(memory: Memory | None, table: Table, job: Job) -> Records | None:
    return None if memory is None else Records(memory, table.party, job.identities)


def _group_of(job: Job, party: str) -> Group:
    for group in job.groups:
        if party in group.parties:
            return group
    raise LocalProtocolError(f"{party} is in no group of the job {job.name}")


def _check_nobody_silent(table: Table, silent: Sequence[str]) -> None:
    if silent:
        raise DataError(f"party {table.party} never got the letters of {', '.join(silent)}")


def _unexpected(sender: str, letter: object) -> RemoteProtocolError:
    return RemoteProtocolError(f"{sender} may not send {type(letter).__name__} here")
