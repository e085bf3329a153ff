"""`vfedsec check party.toml`: what a party's own table is read as, for nobody but its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.output import result_console

if TYPE_CHECKING:
    from rich.table import Table as Printed

    from vfedsec.config.party import PartyFile
    from vfedsec.data.summaries import ColumnSummary
    from vfedsec.data.table import Table

_ROWS = 5
_MOST_CLASSES = 10


def check_party_file(path: Path) -> None:
    """Print every column with its kind, its features and its first cells. Raises `ConfigError` or `DataError`."""
    from vfedsec.config.load import load_party
    from vfedsec.data.encoding import Encoder
    from vfedsec.data.sources import load
    from vfedsec.data.summaries import summarise

    party = load_party(path)
    table = load(party, path.parent, None, with_label=bool(party.data.label))
    summaries = summarise(table, list(table.columns))
    console = result_console()
    console.print(f"The table of {party.name!r}: {len(table)} rows of {table.source}\n", markup=False, soft_wrap=True)
    console.print(_columns(party, summaries))
    console.print()
    console.print(_first_rows(party, table))
    console.print(
        f"\n{Encoder(summaries).width} features in all. In a group, what its other parties hold can add some."
    )
    if table.label is not None:
        console.print(_label(party.data.label, table.label), markup=False)


def _columns(party: PartyFile, summaries: list[ColumnSummary]) -> Printed:
    from rich.text import Text

    from vfedsec.dashboard.tables import new_table
    from vfedsec.data.encoding import Encoder
    from vfedsec.data.preview import printable

    printed = new_table("What its columns are read as", "column", "kind", "", "features", "missing")
    printed.columns[1].justify = printed.columns[2].justify = "left"
    for one in summaries:
        origin = "declared" if one.name in party.data.kinds else "inferred"
        features, missing = str(Encoder([one]).width), str(one.missing or "")
        printed.add_row(Text(printable(one.name)), one.kind, origin, features, missing)
    return printed


def _first_rows(party: PartyFile, table: Table) -> Printed:
    from rich.text import Text

    from vfedsec.dashboard.tables import new_table
    from vfedsec.data.preview import printable, shown_cells

    heads = [str(row + 1) for row in range(min(_ROWS, len(table)))]
    printed = new_table("Its first rows", "row", *heads)
    for column in printed.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    printed.add_row(Text(printable(party.data.id)), *(Text(printable(cell)) for cell in table.ids[:_ROWS]))
    for name in table.columns:
        printed.add_row(Text(printable(name)), *map(Text, shown_cells(table, name, _ROWS)))
    if table.label is not None:
        printed.add_row(Text(printable(party.data.label)), *(Text(printable(cell)) for cell in table.label[:_ROWS]))
    return printed


def _label(name: str, label: list[str]) -> str:
    from collections import Counter

    from vfedsec.data.preview import printable

    different = Counter(label)
    if len(different) > _MOST_CLASSES:
        return f"Label {name!r}: {len(different)} different values"
    shares = ", ".join(f"{printable(text)} ({times / len(label):.1%})" for text, times in sorted(different.items()))
    return f"Label {name!r}: {shares}"
