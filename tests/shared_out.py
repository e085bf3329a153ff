"""Random tables, and how their rows are shared out over the parties of a group."""

import datetime as dt

from hypothesis import strategies as st

from vfedsec.data.table import Table


def table(columns, kinds=None, party="bank"):
    rows = len(next(iter(columns.values())))
    return Table.from_columns(party, [str(r) for r in range(rows)], columns, kinds=kinds)


CELLS = {
    "number": st.one_of(st.none(), st.integers(-3, 3), st.floats(-1e6, 1e6)),
    "far": st.one_of(st.none(), st.floats(1e8, 1e8 + 10)),
    "town": st.one_of(st.none(), st.sampled_from(["Ulm", "Köln", "Bonn", "", "Trier"])),
    "member": st.one_of(st.none(), st.booleans()),
    "answer": st.one_of(st.none(), st.sampled_from(["yes", "no", "perhaps"])),
    "since": st.one_of(st.none(), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))),
}
ROWS = st.lists(st.tuples(*CELLS.values()), min_size=5, max_size=30)


@st.composite
def splits(draw):
    """Rows, and the places where they are cut into two to five parties."""
    rows = draw(ROWS)
    inner = st.integers(1, len(rows) - 1)
    cuts = sorted(draw(st.lists(inner, min_size=1, max_size=4, unique=True)))
    return rows, list(zip([0, *cuts], [*cuts, len(rows)], strict=True))


def columns_of(rows):
    return dict(zip(CELLS, map(list, zip(*rows, strict=True)), strict=True))
