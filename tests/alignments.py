"""Both sides of an alignment in memory, for tests: letters as bytes, and a memory that can be looked into."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from vfedsec.data.alignment import ActiveAlignment, PassiveAlignment
from vfedsec.data.alignment_letters import AlignmentOpened, AlignmentOpening, AlignmentReply, AlignmentRequest
from vfedsec.data.curve import Curve
from vfedsec.data.letters import read, write
from vfedsec.data.remembering import OrderMemory, PlacesMemory, Records


@dataclass
class DictMemory:
    """Implements `Memory`."""

    kept: dict[str, bytes] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def load(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def save(self, name: str, data: bytes) -> None:
        self.kept[name] = data

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def records(memory: DictMemory | None, party: str, identities: dict[str, str] | None = None) -> Records | None:
    """Of a party with this memory, if it has one."""
    return None if memory is None else Records(memory, party, identities or {})


class Sides:
    """A shop, active, and its banks, passive, of these ids."""

    def __init__(
        self,
        active: list[str],
        *passive: list[str],
        size: int = 3,
        threads: int = 1,
        memories: dict[str, DictMemory] | None = None,
        seed: bytes = bytes(32),
    ) -> None:
        memories = memories or {}
        tables = {f"bank{number}": ids for number, ids in enumerate(passive)}
        self.active_ids, self.tables = active, tables
        self.curve = Curve(threads)
        remembered = PlacesMemory(active, records(memories.get("shop"), "shop"))
        self.active = ActiveAlignment(active, list(tables), size, self.curve, remembered)
        self.passive = {
            name: PassiveAlignment(
                ids, "shop", size, self.curve, OrderMemory(ids, seed, records(memories.get(name), name), "shop")
            )
            for name, ids in tables.items()
        }
        self.sent: list[tuple[str, str, Any]] = []
        """Sender, receiver, letter."""

    def run(self) -> Sides:
        """Everything there is to say."""
        waiting = list(self.active.begin().items())
        while waiting:
            name, letter = waiting.pop(0)
            request = self.taken(name, self.answered(name, letter))
            if request is not None:
                waiting.append((name, request))
        return self

    def answered(self, name: str, letter: Any) -> Any:
        """What a bank says to a letter."""
        carried = self._carried("shop", name, letter)
        side = self.passive[name]
        answer = side.open(carried) if isinstance(carried, AlignmentOpening) else side.answer(carried)
        return self._carried(name, "shop", answer)

    def taken(self, name: str, letter: Any) -> AlignmentRequest | None:
        """What the shop says to a letter."""
        assert isinstance(letter, AlignmentOpened | AlignmentReply)
        return self.active.open(name, letter) if isinstance(letter, AlignmentOpened) else self.active.take(name, letter)

    def _carried(self, sender: str, receiver: str, letter: Any) -> Any:
        self.sent.append((sender, receiver, letter))
        return read(sender, write(letter))

    def matched(self, name: str = "bank0") -> list[str | None]:
        """For each of the shop's rows the id that the bank has at the place it is matched with."""
        order, ids = self.passive[name].order, self.tables[name]
        return [None if place < 0 else ids[order[place]] for place in self.active.matched[name].tolist()]

    def expected(self, name: str = "bank0") -> list[str | None]:
        """The same by a plain look into the table."""
        return [one if one in self.tables[name] else None for one in self.active_ids]

    def pieces(self, name: str = "bank0") -> int:
        """How many letters with elements went to a bank."""
        return sum(receiver == name and isinstance(letter, AlignmentRequest) for _, receiver, letter in self.sent)
