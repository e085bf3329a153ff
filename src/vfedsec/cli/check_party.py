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
    console.print(_columns(party, table, summaries))
    console.print(
        f"\n{Encoder(summaries).width} features in all. In a group, what its other parties hold can add some."
    )
    if table.label is not None:
        console.print(_label(party.data.label, table.label), markup=False)


def _columns(party: PartyFile, table: Table, summaries: list[ColumnSummary]) -> Printed:
    from rich.text import Text

    from vfedsec.dashboard.tables import new_table
    from vfedsec.data.encoding import Encoder
    from vfedsec.data.preview import printable, shown_cells

    heads = [f"row {row + 1}" for row in range(min(_ROWS, len(table)))]
    printed = new_table("What its columns are read as", "column", "kind", "", "features", "missing", *heads)
    for column in printed.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for column, width in zip(printed.columns[1:5], (11, 8, 8, 7), strict=True):
        column.min_width = width
    printed.columns[1].justify = printed.columns[2].justify = "left"
    ids = [Text(printable(cell)) for cell in table.ids[:_ROWS]]
    printed.add_row(Text(party.data.id), "id", "", "", "", *ids)
    for one in summaries:
        cells = [Text(cell) for cell in shown_cells(table, one.name, _ROWS)]
        origin = "declared" if one.name in party.data.kinds else "inferred"
        features, missing = str(Encoder([one]).width), str(one.missing or "")
        printed.add_row(Text(printable(one.name)), one.kind, origin, features, missing, *cells)
    return printed


def _label(name: str, label: list[str]) -> str:
    from collections import Counter

    from vfedsec.data.preview import printable

    different = Counter(label)
    if len(different) > _MOST_CLASSES:
        return f"Label {name!r}: {len(different)} different values"
    shares = ", ".join(f"{printable(text)} ({times / len(label):.1%})" for text, times in sorted(different.items()))
    return f"Label {name!r}: {shares}"
