"""The conversation before the first round: who shares which rows, and how columns are encoded.

The active party aligns its rows with each passive party's (`alignment`). Passive parties of one
group first tell each other how they read their columns and, if that goes together, send each other
summaries of them (`encoding`), so that all encode alike. A passive
party keeps its features in the secret order of its alignment, so the row numbers the active party
holds are its own.

Where two parties of one group hold the same person, the row of the party that the group lists first
counts. Encodings are fitted on all rows of a table, since a passive party does not learn which of
them are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import Group, Job
from vfedsec.data.alignment import ActiveAlignment, PassiveAlignment
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.batches import TableBatches
from vfedsec.data.curve import Curve
from vfedsec.data.encoding import ColumnSummary, Encoder, common_kind, merge, summarise, told_kind
from vfedsec.data.labels import encode_labels
from vfedsec.data.letters import GroupKinds, GroupSummary, Letter, read, write
from vfedsec.data.ordering import derived_seed
from vfedsec.data.pieces import rows_a_piece
from vfedsec.data.prepared import BuildModel
from vfedsec.data.remembering import Memory, OrderMemory, PlacesMemory, Records
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
        self._encoder = Encoder(summarise(table, job.active.columns))
        self._labels = None if table.label is None else encode_labels(table, job.task)
        remembered = PlacesMemory(table.ids, _records(memory, table))
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
        _check_all_wrote(self._table, self._job.passive_parties, self._alignment.matched)
        features = self._encoder.transform(self._table)
        partners, keep = self._joined()
        batches = self._batches({party: rows[keep] for party, rows in partners.items()}, keep)
        model = self._build_model(features[keep], self._job.embedding_width, self._job.active.model, model_seed)
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
        *,
        curve: Curve | None = None,
        memory: Memory | None = None,
    ) -> None:
        """Without a `memory`, nothing is remembered of the alignment, by the active party either."""
        self._job = job
        self._party = party_name
        self._group = _group_of(job, party_name)
        self._table = table
        self._build_model = build_model
        seed, active = derived_seed(private_seed, "row order"), job.active.party
        remembered = OrderMemory(table.ids, seed, _records(memory, table), active)
        piece = rows_a_piece(len(job.passive_parties))
        self._alignment = PassiveAlignment(table.ids, active, piece, curve or Curve(), remembered)
        self._summaries = {party_name: summarise(table, self._group.columns)}
        self._kinds = {party_name: [told_kind(summary) for summary in self._summaries[party_name]]}

    def begin(self) -> Mail:
        """To the other parties of the group: how this one reads its columns."""
        return self._to_group(GroupKinds(self._kinds[self._party]))

    def receive(self, sender: str, body: bytes) -> Mail:
        """Answer the active party's part of the alignment, or take a peer's kinds or summaries.

        Raises `RemoteProtocolError` for anything else, and `DataError` when the group's kinds do not go together.
        """
        letter = read(sender, body)
        if sender == self._job.active.party and isinstance(letter, AlignmentOpening):
            return [(sender, write(self._alignment.open(letter)))]
        if sender == self._job.active.party and isinstance(letter, AlignmentRequest):
            return [(sender, write(self._alignment.answer(letter)))]
        if isinstance(letter, GroupKinds) and sender in self._group.parties:
            return self._take_kinds(sender, letter)
        if isinstance(letter, GroupSummary) and sender in self._group.parties:
            self._take_summary(sender, letter)
            return []
        raise _unexpected(sender, letter)

    def progress(self) -> tuple[int, int]:
        """Of the alignment: how many rows of both sides have been compared, and how many there are."""
        return self._alignment.progress()

    def finish(self, model_seed: bytes) -> tuple[BottomModel, Batches | None]:
        """The model on the features in secret order.

        Raises `DataError` when a letter is missing.
        """
        expected = (self._job.active.party, *self._group.parties)
        aligned = [self._job.active.party] if self._alignment.is_over else []
        _check_all_wrote(self._table, expected, [*aligned, *self._summaries])
        in_order = {party: self._summaries[party] for party in self._group.parties}
        features = Encoder(merge(in_order)).transform(self._table)[self._alignment.order]
        width, spec = self._group.width, self._group.model
        return self._build_model(features, width, spec, model_seed), None

    def _to_group(self, letter: Letter) -> Mail:
        body = write(letter)
        return [(party, body) for party in self._group.parties if party != self._party]

    def _take_kinds(self, sender: str, letter: GroupKinds) -> Mail:
        """Own summaries to the group, once all kinds are known and go together: not a value before."""
        if sender in self._kinds:
            raise _repeated(sender, letter)
        if len(letter.kinds) != len(self._group.columns):
            raise RemoteProtocolError(f"{sender} told the kinds of other columns than those of {self._group.name}")
        self._kinds[sender] = letter.kinds
        if len(self._kinds) < len(self._group.parties):
            return []
        for place, name in enumerate(self._group.columns):
            common_kind(name, {party: self._kinds[party][place] for party in self._group.parties})
        return self._to_group(GroupSummary(self._summaries[self._party]))

    def _take_summary(self, sender: str, letter: GroupSummary) -> None:
        if sender in self._summaries:
            raise _repeated(sender, letter)
        _check_columns(sender, letter.columns, self._group)
        self._summaries[sender] = letter.columns


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


def _records(memory: Memory | None, table: Table) -> Records | None:
    return None if memory is None else Records(memory, table.party, table.source)


def _group_of(job: Job, party: str) -> Group:
    for group in job.groups:
        if party in group.parties:
            return group
    raise LocalProtocolError(f"{party} is in no group of the job {job.name}")


def _check_columns(sender: str, summaries: Sequence[ColumnSummary], group: Group) -> None:
    if tuple(summary.name for summary in summaries) != group.columns:
        raise RemoteProtocolError(f"{sender} summarised other columns than those of {group.name}")


def _check_all_wrote(table: Table, expected: Sequence[str], wrote: Mapping[str, object] | Sequence[str]) -> None:
    if silent := [party for party in expected if party not in wrote]:
        raise DataError(f"party {table.party} never got the letter of {', '.join(silent)}")


def _unexpected(sender: str, letter: object) -> RemoteProtocolError:
    return RemoteProtocolError(f"{sender} may not send {type(letter).__name__} here")


def _repeated(sender: str, letter: object) -> RemoteProtocolError:
    return RemoteProtocolError(f"{sender} sent {type(letter).__name__} twice")
