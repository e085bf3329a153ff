"""Reading a party's table from where its party file says it is.

Whatever the source, its rows are opened by name of column (`DuckRows` for tables, `ArrayRows` for arrays), and
everything after it (which columns, ids, missing values, labels) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.array_files import read_array, read_npz
from vfedsec.data.array_rows import ArrayRows
from vfedsec.data.csv_files import check_header, head_of
from vfedsec.data.databases import SQLITE_SUFFIXES, attach, is_postgres, shown_address, table_in
from vfedsec.data.duck import DuckRows, connected, literal
from vfedsec.data.duck_errors import reason_of, refusal
from vfedsec.data.json_files import json_relation
from vfedsec.data.origin import Origin
from vfedsec.data.table import Table

ROW_NUMBER = "#"
"""Named as the id: the number of the row, from 1."""

_CSV = (".csv", ".tsv", ".txt")
_JSON = (".json", ".jsonl", ".ndjson")
_ATTACHED = "source"
_QUERY = "vfedsec_query"

Rows = DuckRows | ArrayRows


def load(party_file: PartyFile, base: Path, columns: Sequence[str] | None, with_label: bool) -> Table:
    """The named columns of a party's table (or all of them), with its label column if asked for.

    Raises `DataError` when the source cannot be read or lacks an id, a column or a label that is needed.
    """
    data = party_file.data
    origin = Origin(party_file.name, shown_source(data, base))
    _check_roles(origin, data, columns or (), with_label)
    with _opened(origin, data, base) as rows:
        features = [name for name in rows.names if name not in (data.id, data.label)] if columns is None else columns
        wanted = [*([] if data.id == ROW_NUMBER else [data.id]), *features, *([data.label] if with_label else [])]
        _check_names(origin, rows, [*wanted, *data.kinds])  # a kind of nothing is a slip
        numeric = {name for name in features if data.kinds.get(name, "numeric") == "numeric"}
        rows.read(wanted, data.missing, numeric)
        if not len(rows):
            raise origin.error("there is a header and no rows" if _is_csv(data) else "there are no rows")
        return Table(
            party=party_file.name,
            ids=[str(row + 1) for row in range(len(rows))] if data.id == ROW_NUMBER else rows.ids(data.id),
            columns={name: rows.column(name, data.kinds.get(name)) for name in features},
            label=rows.label(data.label) if with_label else None,
            source=origin.source,
            kinds=data.kinds,
            id_column=data.id,
            label_column=data.label,
        )


def shown_source(data: DataSource, base: Path) -> str:
    """The source for messages, without a password."""
    if data.source:
        return shown_address(data.source) if is_postgres(data.source) else str(base / data.source)
    return "data.query" if data.query else "data.arrays"


def files_named(data: DataSource, base: Path) -> list[Path]:
    """The files that the source is made of, as far as it names them; a query may read others."""
    places = [data.source] if data.source else [*data.attach.values(), *data.arrays.values()]
    return [base / place for place in places if not is_postgres(place)]


def _check_roles(origin: Origin, data: DataSource, columns: Sequence[str], with_label: bool) -> None:
    if with_label and not data.label:
        raise origin.error("a label is needed, and the party file names no label column")
    for role, name in (("id", data.id), ("label", data.label)):
        if name and name in columns:
            raise origin.error(f"the {role} column is also listed as a feature", column=name)


def _check_names(origin: Origin, rows: Rows, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in rows.names:
            raise origin.error(f"there is no such column; there are {rows.names}", column=name)
    check_header(origin, rows.names, wanted)


@contextmanager
def _opened(origin: Origin, data: DataSource, base: Path) -> Iterator[Rows]:
    if data.arrays:
        arrays = {}
        for name, place in data.arrays.items():
            arrays[name] = read_array(Origin(origin.party, str(base / place)), base / place)
        yield ArrayRows(origin, arrays)
    elif Path(data.source).suffix.lower() == ".npz":
        yield ArrayRows(origin, read_npz(origin, base / data.source))
    else:
        with connected() as connection:
            yield _queried(origin, connection, data, base) if data.query else _file(origin, connection, data, base)


def _queried(origin: Origin, connection: duckdb.DuckDBPyConnection, data: DataSource, base: Path) -> Rows:
    for name, address in data.attach.items():
        attach(Origin(origin.party, f"data.attach.{name}"), connection, name, address, base)
    connection.execute(f"SET file_search_path = {literal(str(base.resolve()))}")
    try:
        statements = connection.extract_statements(data.query)
    except duckdb.Error as error:
        raise origin.error(reason_of(error)) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise origin.error("expected one SELECT and nothing else")
    try:
        # A view takes the query as it stands, whatever comments or semicolon it ends in.
        connection.execute(f"CREATE TEMP VIEW {_QUERY} AS {data.query}")
    except duckdb.Error as error:
        raise refusal(origin, error) from None
    return DuckRows(origin, connection, _QUERY)


def _file(origin: Origin, connection: duckdb.DuckDBPyConnection, data: DataSource, base: Path) -> Rows:
    if is_postgres(data.source) or _suffix(data.source) in SQLITE_SUFFIXES:
        attach(origin, connection, _ATTACHED, data.source, base)
        return DuckRows(origin, connection, table_in(origin, connection, _ATTACHED, data.table))
    path = base / data.source
    if _suffix(data.source) not in _READERS:
        known = ", ".join([*_READERS, ".npz", *SQLITE_SUFFIXES])
        raise origin.error(f"files that end in {Path(data.source).suffix!r} cannot be read; supported: {known}")
    if not path.is_file():
        raise origin.error("the file cannot be read: No such file")
    return _READERS[_suffix(data.source)](origin, connection, path)


def _csv(origin: Origin, connection: duckdb.DuckDBPyConnection, path: Path) -> Rows:
    head = head_of(origin, path)
    return DuckRows(origin, connection, head.relation(_pattern(path)), names=head.names, blank_lines=head.blank_lines)


def _parquet(origin: Origin, connection: duckdb.DuckDBPyConnection, path: Path) -> Rows:
    return DuckRows(origin, connection, f"read_parquet({literal(_pattern(path))})")


def _json(origin: Origin, connection: duckdb.DuckDBPyConnection, path: Path) -> Rows:
    return DuckRows(origin, connection, json_relation(origin, connection, literal(_pattern(path))))


def _pattern(path: Path) -> str:
    """A path as DuckDB takes it: what would be a wildcard stands for itself."""
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(path.resolve()))


def _suffix(source: str) -> str:
    """How a file's name ends, apart from being compressed."""
    path = Path(source.lower())
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def _is_csv(data: DataSource) -> bool:
    return _suffix(data.source) in _CSV


_Reader = Callable[[Origin, duckdb.DuckDBPyConnection, Path], Rows]
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(_CSV, _csv),
    ".parquet": _parquet,
    **dict.fromkeys(_JSON, _json),
}
