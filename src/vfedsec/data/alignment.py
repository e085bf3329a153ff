"""Private set intersection of the active party and a passive one, with row numbers as the result.

Each side has a secret exponent of its own, a for the active party and p for the passive one, and raises hashes of ids
on an elliptic curve to it (`curve`):

    active → passive    H(x)^a for its ids x, in its row order
    passive → active    H(x)^ap in the same order; H(y)^p for its own ids y, in a secret order
    active              H(y)^pa; equal elements are equal ids

So the active party learns which of its rows the passive party has, and where in the passive party's secret order; each
learns how many rows the other has. Nobody learns an id it does not hold. Both sides are taken to follow the protocol;
either could put ids it made up into its request, as in any such protocol, to ask whether the other side has them.

The elements travel in pieces. Both sides tell their number of rows first, from which the number and the length of all
pieces follow; what is not the next piece is refused. If both still have the tables that they remember to have aligned
(`remembering`), nothing of it happens.
"""

from __future__ import annotations

from collections.abc import Sequence

from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.curve import ELEMENT_BYTES, Curve, new_key
from vfedsec.data.matching import Elements, places
from vfedsec.data.pieces import Pieces, check_length, out_of_turn, raised, twice
from vfedsec.data.remembering import OrderMemory, PlacesMemory, RememberedPlaces
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.interfaces import Rows


class ActiveAlignment:
    """The active party's side, with all passive parties of a run."""

    def __init__(
        self, ids: Sequence[str], partners: Sequence[str], size: int, curve: Curve, memory: PlacesMemory
    ) -> None:
        """`partners` are all passive parties, `size` is what `rows_a_piece` says."""
        self.matched: dict[str, Rows] = {}
        """For each own row its place in the party's secret order or `ABSENT_ROW`, of every party that is done."""
        self._rows = len(ids)
        self._partners = tuple(partners)
        self._size = size
        self._memory = memory
        self._own = _OwnElements(ids, new_key(), curve)
        recalled = {party: memory.recall(party) for party in self._partners}  # takes long: not while somebody waits
        self._remembered = {party: places for party, places in recalled.items() if places}
        self._opened: dict[str, _Comparison | None] = {}

    def begin(self) -> dict[str, AlignmentOpening]:
        """The first letter to every passive party."""
        fingerprints = {party: remembered.fingerprint for party, remembered in self._remembered.items()}
        return {party: AlignmentOpening(self._rows, fingerprints.get(party, b"")) for party in self._partners}

    def open(self, sender: str, letter: AlignmentOpened) -> AlignmentRequest | None:
        """Take a passive party's first letter; what to answer, if anything. Raises `RemoteProtocolError` for a second
        one."""
        if sender in self._opened:
            raise RemoteProtocolError(f"{sender} sent AlignmentOpened twice")
        remembered = self._remembered.pop(sender, None)
        if remembered and (letter.fingerprint, letter.rows) == (remembered.fingerprint, remembered.rows):
            self.matched[sender] = remembered.places
            self._opened[sender] = None
            return None
        comparison = self._opened[sender] = _Comparison(sender, self._own, letter, self._size)
        return self._next(comparison)

    def take(self, sender: str, letter: AlignmentReply) -> AlignmentRequest | None:
        """Take a piece; what to answer, if anything. Raises `RemoteProtocolError` for anything but the next piece."""
        comparison = self._opened.get(sender)
        if comparison is None or comparison.is_over:
            raise out_of_turn(sender)
        comparison.take(letter)
        return self._next(comparison)

    def progress(self) -> tuple[int, int]:
        """How many rows of both sides have been compared, and how many there are to compare."""
        comparisons = [one for one in self._opened.values() if one]
        return sum(one.done for one in comparisons), sum(one.total for one in comparisons)

    def _next(self, comparison: _Comparison) -> AlignmentRequest | None:
        if not comparison.is_over:
            return comparison.request()
        sender, opened = comparison.sender, comparison.opened
        self.matched[sender] = comparison.places()
        self._memory.keep(sender, RememberedPlaces(opened.fingerprint, opened.rows, self.matched[sender]))
        if len(self.matched) == len(self._partners):
            self._own.forget()
        return None


class _OwnElements:
    """The active party's blinded ids: made piece by piece, when first asked for, and kept for the other parties."""

    def __init__(self, ids: Sequence[str], key: bytes, curve: Curve) -> None:
        self.ids = ids
        self.key = key
        self.curve = curve
        self._made = bytearray()

    def piece(self, rows: slice) -> bytes:
        """Those of these rows."""
        missing = self.ids[len(self._made) // ELEMENT_BYTES : rows.stop]
        self._made += self.curve.hashed(missing, self.key)
        return bytes(self._made[rows.start * ELEMENT_BYTES : rows.stop * ELEMENT_BYTES])

    def forget(self) -> None:
        """Give the memory back."""
        self._made = bytearray()


class _Comparison:
    """Of the active party's rows with those of one passive party."""

    def __init__(self, sender: str, own: _OwnElements, opened: AlignmentOpened, size: int) -> None:
        self.sender = sender
        self.opened = opened
        self._pieces = Pieces(len(own.ids), opened.rows, size)
        self.total = self._pieces.total
        self._own = own
        self._number = 0
        self._answers, self._theirs = Elements(), Elements()

    @property
    def is_over(self) -> bool:
        """Whether the last piece has come."""
        return self._number == self._pieces.count

    @property
    def done(self) -> int:
        """How many rows of both sides have been through."""
        return self._pieces.before(self._number)

    def request(self) -> AlignmentRequest:
        """The next piece."""
        return AlignmentRequest(self._number, self._own.piece(self._pieces.active(self._number)))

    def take(self, letter: AlignmentReply) -> None:
        """Its answer."""
        number, pieces = self._number, self._pieces
        if letter.number != number:
            raise out_of_turn(self.sender)
        check_length(self.sender, letter.answers, pieces.active(number))
        check_length(self.sender, letter.elements, pieces.passive(number))
        theirs = raised(self.sender, self._own.curve, letter.elements, self._own.key)
        self._answers.add(letter.answers)
        self._theirs.add(theirs)
        self._number += 1

    def places(self) -> Rows:
        """The result, to be asked for once. Raises `RemoteProtocolError` where an element came twice."""
        answers, theirs = self._answers, self._theirs
        self._answers, self._theirs = Elements(), Elements()
        if not answers.are_different():
            raise twice(self.sender)
        try:
            return places(answers, theirs)
        except ValueError:
            raise twice(self.sender) from None


class PassiveAlignment:
    """A passive party's side."""

    def __init__(self, ids: Sequence[str], partner: str, size: int, curve: Curve, memory: OrderMemory) -> None:
        """`partner` is the active party, `size` what `rows_a_piece` says."""
        self.is_over = False
        self._ids = ids
        self._partner = partner
        self._size = size
        self._curve = curve
        self._memory = memory
        self._key = new_key()
        self.order = memory.order  # takes long: not while somebody waits
        """The secret order: which own row stands at each place that the active party learns of."""
        self._pieces: Pieces | None = None
        self._number = 0
        self._theirs = Elements()

    def open(self, letter: AlignmentOpening) -> AlignmentOpened:
        """Answer the first letter. Raises `RemoteProtocolError` for a second one: it would be a second question
        about who is in the table."""
        if self._pieces:
            raise RemoteProtocolError(f"{self._partner} sent AlignmentOpening twice")
        fingerprint = self._memory.fingerprint
        is_known = bool(fingerprint) and letter.fingerprint == fingerprint
        self._pieces = Pieces(0, 0, self._size) if is_known else Pieces(letter.rows, len(self._ids), self._size)
        self.is_over = not self._pieces.count
        return AlignmentOpened(len(self._ids), fingerprint)

    def answer(self, letter: AlignmentRequest) -> AlignmentReply:
        """Answer a piece with one. Raises `RemoteProtocolError` for anything but the next piece."""
        pieces = self._pieces
        if pieces is None or self.is_over or letter.number != self._number:
            raise out_of_turn(self._partner)
        check_length(self._partner, letter.elements, pieces.active(self._number))
        answers = raised(self._partner, self._curve, letter.elements, self._key)
        self._theirs.add(letter.elements)
        is_last = self._number + 1 == pieces.count
        if is_last and not self._theirs.are_different():
            raise twice(self._partner)
        places = self.order[pieces.passive(self._number)].tolist()
        elements = self._curve.hashed([self._ids[row] for row in places], self._key)
        self._number += 1
        if is_last:
            self.is_over = True
            self._theirs = Elements()
            self._memory.keep()
        return AlignmentReply(letter.number, answers, elements)

    def progress(self) -> tuple[int, int]:
        """How many rows of both sides have been compared, and how many there are to compare."""
        return (self._pieces.before(self._number), self._pieces.total) if self._pieces else (0, 0)
