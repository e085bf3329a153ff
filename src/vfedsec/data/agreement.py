"""How the passive parties of one group come to one encoder without showing each other their rows.

    kinds        how each reads its columns, and a seed for the masks of every pair; nothing of a value before all
                 kinds go together
    categories   which texts occur in columns that the group reads as categories
    sums         how many values there are, are missing, and have each category, and the sums and sums of squares of
                 numbers, exact and masked: a member sees the group's sums and its own, no other's

Everybody writes to everybody, sealed end to end, and computes the same. In a group of two, each can take its own sums
from the group's and has the other's. A member who adds nonsense, or tells its peers of different texts, spoils the
sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from vfedsec.config.job import Group
from vfedsec.crypto.masked_sums import Part, SumShape
from vfedsec.crypto.pairs import derive
from vfedsec.data.letters import SEED_BYTES, GroupCategories, GroupKinds, GroupSums, Letter, write
from vfedsec.data.summaries import ColumnSummary, ToldKind, common_kind
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import Mail

GroupLetter = GroupKinds | GroupCategories | GroupSums

_MOST_ROWS = 1 << 40


class GroupAgreement:
    """One member's side."""

    def __init__(
        self, group: Group, member: str, summaries: Sequence[ColumnSummary], entropy: Callable[[int], bytes]
    ) -> None:
        self._group = group
        self._member = member
        self._own = list(summaries)
        self._peers = [party for party in group.parties if party != member]
        self._seeds = {peer: entropy(SEED_BYTES) for peer in self._peers}
        self._kinds: dict[str, GroupKinds] = {}
        self._categories: dict[str, GroupCategories] = {}
        self._sums: dict[str, GroupSums] = {}
        self._common: list[ToldKind] | None = None
        self._layout: _Layout | None = None

    def begin(self) -> Mail:
        """To every peer: how this member reads its columns."""
        told = [summary.told for summary in self._own]
        return [(peer, write(GroupKinds(told, self._seeds[peer]))) for peer in self._peers]

    def receive(self, sender: str, letter: GroupLetter) -> Mail:
        """Take a letter, and write the next ones once every peer's are there, which may come in any order.

        Raises `RemoteProtocolError` for a letter that is repeated or of other columns, and `DataError` when the
        group's kinds do not go together.
        """
        if sender not in self._peers:
            raise RemoteProtocolError(f"{sender} may not send {type(letter).__name__} here")
        self._check_columns(sender, letter)
        self._keep(sender, letter)
        return [*self._tell_categories(), *self._tell_sums()]

    def silent(self) -> list[str]:
        """The peers that have not sent all their letters."""
        kept = (self._kinds, self._categories, self._sums)
        return [peer for peer in self._peers if not all(peer in letters for letters in kept)]

    def summaries(self) -> list[ColumnSummary]:
        """Of the whole group, once nobody is silent. Raises `RemoteProtocolError` when the sums are impossible."""
        if not self._peers:
            return self._own
        assert self._layout is not None
        parts = [self._sums[party].masked for party in self._group.parties]
        return self._layout.summaries(self._layout.shape.total(parts))

    def _keep(self, sender: str, letter: GroupLetter) -> None:
        kept_by_type: dict[type, dict[str, Any]] = {
            GroupKinds: self._kinds,
            GroupCategories: self._categories,
            GroupSums: self._sums,
        }
        kept = kept_by_type[type(letter)]
        if sender in kept:
            raise RemoteProtocolError(f"{sender} sent {type(letter).__name__} twice")
        kept[sender] = letter

    def _check_columns(self, sender: str, letter: GroupLetter) -> None:
        if not isinstance(letter, GroupSums) and len(letter.columns) != len(self._group.columns):
            raise RemoteProtocolError(f"{sender} told of other columns than those of {self._group.name}")

    def _tell_categories(self) -> Mail:
        if self._common is not None or len(self._kinds) < len(self._peers):
            return []
        told = {party: letter.columns for party, letter in self._kinds.items()}
        told[self._member] = [summary.told for summary in self._own]
        self._common = [
            common_kind(name, {party: told[party][place] for party in self._group.parties})
            for place, name in enumerate(self._group.columns)
        ]
        pairs = zip(self._own, self._common, strict=True)
        words = [sorted(own.categories) if common.kind == "categorical" else [] for own, common in pairs]
        self._categories[self._member] = GroupCategories(words)
        return self._to_peers(self._categories[self._member])

    def _tell_sums(self) -> Mail:
        if self._layout is not None or self._common is None or len(self._categories) < len(self._group.parties):
            return []
        told = [letter.columns for letter in self._categories.values()]
        words = [sorted(set().union(*columns)) for columns in zip(*told, strict=True)]
        self._layout = _Layout(self._group.columns, self._common, words)
        masked = self._layout.shape.masked(self._layout.part(self._own), self._mask_keys(self._layout))
        self._sums[self._member] = GroupSums(masked)
        return self._to_peers(self._sums[self._member])

    def _mask_keys(self, layout: _Layout) -> Iterator[tuple[bytes, bool]]:
        places = {party: place for place, party in enumerate(self._group.parties)}
        for peer in self._peers:
            is_first = places[self._member] < places[peer]
            own, theirs = self._seeds[peer], self._kinds[peer].seed
            names = (self._member, peer) if is_first else (peer, self._member)
            secret = own + theirs if is_first else theirs + own
            yield derive(secret, "sums of a group", *names, layout.digest), is_first

    def _to_peers(self, letter: Letter) -> Mail:
        body = write(letter)
        return [(peer, body) for peer in self._peers]


@dataclass(frozen=True)
class _Layout:
    """Where the numbers of a group's columns stand in its sums."""

    names: Sequence[str]
    kinds: Sequence[ToldKind]
    words: Sequence[Sequence[str]]

    @property
    def digest(self) -> bytes:
        """Of all of it. Masks are of one layout: a member that tells its peers of different texts could otherwise
        shift one peer's numbers against another's, and read off each where the other has none."""
        return hashlib.sha256(msgspec.msgpack.encode((self.names, self.kinds, self.words))).digest()

    @property
    def shape(self) -> SumShape:
        """How many they are: rows with a value, without one, with a time of day, and with each category; two sums."""
        return SumShape(sum(3 + len(words) for words in self.words), 2 * len(self.names))

    def part(self, summaries: Sequence[ColumnSummary]) -> Part:
        """One member's numbers."""
        counts, wide = [], []
        for summary, words in zip(summaries, self.words, strict=True):
            counts += [summary.count, summary.missing, summary.timed]
            counts += [summary.categories.get(word, 0) for word in words]
            wide += [summary.total, summary.squares]
        return Part(counts, wide)

    def summaries(self, total: Part) -> list[ColumnSummary]:
        """The group's columns. Raises `RemoteProtocolError` when the sums are impossible."""
        counts, wide = iter(total.counts), iter(total.wide)
        columns = zip(self.names, self.kinds, self.words, strict=True)
        return [_summary_of(name, told, words, counts, wide) for name, told, words in columns]


def _summary_of(
    name: str, told: ToldKind, words: Sequence[str], counts: Iterator[int], wide: Iterator[int]
) -> ColumnSummary:
    count, missing, timed = next(counts), next(counts), next(counts)
    categories = {word: next(counts) for word in words}
    summary = ColumnSummary(
        name=name,
        told=told,
        count=count,
        missing=missing,
        timed=timed,
        total=next(wide),
        squares=next(wide),
        categories=_occurring(categories),
    )
    _check(summary)
    return summary


def _occurring(categories: Mapping[str, int]) -> dict[str, int]:
    return {word: times for word, times in categories.items() if times}


def _check(summary: ColumnSummary) -> None:
    """A member that masks with another key than its peer, or adds nonsense, is noticed here, if not who it is."""
    counts = [summary.count, summary.missing, summary.timed, *summary.categories.values()]
    adds_up = summary.told.kind != "categorical" or sum(summary.categories.values()) == summary.count
    # By the Cauchy-Schwarz inequality.
    is_possible = summary.count * summary.squares >= summary.total * summary.total
    if max(counts) > _MOST_ROWS or not adds_up or not is_possible:
        raise RemoteProtocolError(f"the sums of column {summary.name!r} that the group's members sent are impossible")
