"""Writes the generated parts of the documentation: the state diagrams, from the very tables the code runs on.

python docs/generate.py            write them
python docs/generate.py --check    exit with 1 if a file on disk is not what would be written
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from vfedsec.protocol.states import (
    ACTIVE_TRANSITIONS,
    AGGREGATOR_TRANSITIONS,
    PASSIVE_TRANSITIONS,
    PartyEvent,
    PartyState,
)

DOCS = Path(__file__).parent
_BEGIN, _END = "<!-- generated: {} -->", "<!-- end of {} -->"


def diagram(edges: Iterable[tuple[str, str, str]], first: Iterable[str], last: str) -> str:
    """A Mermaid state diagram."""
    lines = ["```mermaid", "stateDiagram-v2", *(f"    [*] --> {state}" for state in first)]
    lines += [f"    {start} --> {end}{': ' + label if label else ''}" for start, end, label in edges]
    return "\n".join([*lines, f"    {last} --> [*]", "```"])


def party_diagram(transitions: Mapping[PartyState, Mapping[PartyEvent, PartyState]]) -> str:
    """One party's table; events that lead the same way share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for state, events in transitions.items():
        for event, following in events.items():
            arrows.setdefault((state.value, following.value), []).append(event.value)
    edges = [(start, end, ", ".join(events)) for (start, end), events in arrows.items()]
    return diagram(edges, ["new", "restarted"], "finished")


def aggregator_diagram() -> str:
    """The aggregator's table."""
    edges = [
        (state.value, following.value, "")
        for state, nexts in AGGREGATOR_TRANSITIONS.items()
        for following in sorted(nexts, key=lambda one: one.value)
    ]
    return diagram(edges, ["start"], "done")


def parts() -> dict[str, str]:
    """Every generated part, by its name in the text."""
    return {
        "active": party_diagram(ACTIVE_TRANSITIONS),
        "passive": party_diagram(PASSIVE_TRANSITIONS),
        "aggregator": aggregator_diagram(),
    }


def filled(text: str) -> str:
    """The text with every generated part put between its marks."""
    for name, part in parts().items():
        begin, end = _BEGIN.format(name), _END.format(name)
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{part}\n{end}{rest.split(end)[1]}"
    return text


def main(arguments: list[str]) -> int:
    """Write, or check."""
    path = DOCS / "protocol.md"
    text = path.read_text()
    new = filled(text)
    if "--check" in arguments:
        if new != text:
            print(f"{path.name} is not what the tables say: run `make docs`", file=sys.stderr)
        return int(new != text)
    path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
