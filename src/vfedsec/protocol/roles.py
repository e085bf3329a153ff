"""Who shares which columns of the embedding with whom, worked out once from the job."""

from __future__ import annotations

from vfedsec.config.job import Group, Job


class Roles:
    """The parties of a job, their groups, and the slices of the embedding."""

    def __init__(self, job: Job) -> None:
        self.active = job.active.party
        self.passive = job.passive_parties
        self.parties = (self.active, *self.passive)
        self.groups = job.groups
        self.width = job.embedding_width
        self.batch_size = job.training.batch_size
        self.slices = _slices(job)
        self._group_of = {party: group for group in job.groups for party in group.parties}
        self._slice_of = {
            party: 0 if job.fusion.kind == "sum" else index
            for index, group in enumerate(job.groups)
            for party in group.parties
        }
        self._sharing = tuple(
            tuple(party for party in self.passive if self._slice_of[party] == index)
            for index in range(len(self.slices))
        )
        self._partners = {party: self._partners_of(party) for party in self.parties}
        self._replicated = frozenset(party for group in job.groups if len(group.parties) > 1 for party in group.parties)

    def group_of(self, party: str) -> Group:
        """The group of a passive party."""
        return self._group_of[party]

    def slice_of(self, party: str) -> int:
        """The slice a passive party adds to."""
        return self._slice_of[party]

    def slice_width(self, index: int) -> int:
        """Columns of a slice."""
        columns = self.slices[index]
        return int(columns.stop - columns.start)

    def sharing(self, index: int) -> tuple[str, ...]:
        """The passive parties that add to a slice; the active party always does."""
        return self._sharing[index]

    def partners(self, party: str) -> tuple[str, ...]:
        """Whom a party ever masks with or seals for."""
        return self._partners[party]

    def is_replicated(self, party: str) -> bool:
        """Whether several parties hold replicas of this party's bottom model."""
        return party in self._replicated

    def _partners_of(self, party: str) -> tuple[str, ...]:
        if party == self.active:
            return self.passive
        others = (other for other in self.sharing(self.slice_of(party)) if other != party)
        return (self.active, *others)


def _slices(job: Job) -> tuple[slice, ...]:
    if job.fusion.kind == "sum":
        return (slice(0, job.embedding_width),)
    slices, start = [], 0
    for group in job.groups:
        slices.append(slice(start, start + group.width))
        start += group.width
    return tuple(slices)
