"""SQLite and PostgreSQL, attached to DuckDB for reading only.

DuckDB reads them with extensions of its own, signed by its makers. They come with the extra `databases`; nothing is
ever fetched from a network.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import duckdb

from vfedsec.data.duck import literal, quoted
from vfedsec.data.duck_errors import connection_reason, reason_of
from vfedsec.data.origin import Origin

SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_POSTGRES = ("postgresql://", "postgres://")
_USUAL_SCHEMAS = ("public", "main")
_OWN_SCHEMAS = ("information_schema", "pg_catalog", "pg_toast")
"""What a server tells about itself, which is nobody's table."""
_EXTENSIONS = {"sqlite": "sqlite_scanner", "postgres": "postgres_scanner"}
_NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def is_postgres(address: str) -> bool:
    """Whether this is the address of a PostgreSQL database."""
    return address.startswith(_POSTGRES)


def shown_address(address: str) -> str:
    """The address without a password, whatever marks that should have been percent-encoded stand in it."""
    scheme, _, place = address.partition("://")
    head, *options = re.split("[?#]", place, maxsplit=1)
    user, at, host = head.rpartition("@")
    # With an @ behind it, what looks like the beginning of options may stand within a password.
    return f"{scheme}://" + ("..." if "@" in "".join(options) else re.split("[:/]", user)[0] + at + host)


def attach(origin: Origin, connection: duckdb.DuckDBPyConnection, name: str, address: str, base: Path) -> None:
    """Make a database known under a name. Raises `DataError` when it cannot be reached or read."""
    kind = "postgres" if is_postgres(address) else "sqlite"
    place = address if kind == "postgres" else str(base / address)
    if kind == "sqlite" and not Path(place).is_file():
        raise origin.error("the file cannot be read: No such file")
    try:
        _load_extension(origin, connection, kind)
        connection.execute(f"ATTACH {literal(place)} AS {quoted(name)} (TYPE {kind}, READ_ONLY)")
        connection.execute("SELECT count(*) FROM duckdb_tables() WHERE database_name = ?", [name])
    except duckdb.Error as error:
        reason = connection_reason(error, place, shown_address(place) if kind == "postgres" else place)
        raise origin.error(f"the database cannot be read: {reason}") from None


def table_in(origin: Origin, connection: duckdb.DuckDBPyConnection, name: str, table: str) -> str:
    """What DuckDB selects from: a table of an attached database, which may go unnamed if it is the only one. Raises
    `DataError` when there is no such table."""
    found = _tables(origin, connection, name)
    matching = [one for one in found if table in (one[1], ".".join(one))] if table else found
    if table and len(matching) > 1:
        matching = [one for one in matching if one[0] in _USUAL_SCHEMAS or table == ".".join(one)]
    if len(matching) == 1:
        schema, found_table = matching[0]
        return ".".join(quoted(part) for part in (name, schema, found_table))
    known = ", ".join(sorted(".".join(one) for one in found)) or "none"
    expected = "has several tables, and data.table names none"
    if table:
        expected = f"has {'several tables' if matching else 'no table'} {table!r}"
    if not found:
        expected = "has no table"
    raise origin.error(f"the database {expected}; there are: {known}")


def _tables(origin: Origin, connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, str]]:
    query = (
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = $1 "
        "UNION SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = $1 AND NOT internal"
    )
    try:
        found = connection.execute(query, [name]).fetchall()
    except duckdb.Error as error:
        raise origin.error(f"the database cannot be read: {reason_of(error)}") from None
    return [one for one in found if one[0] not in _OWN_SCHEMAS]


def _load_extension(origin: Origin, connection: duckdb.DuckDBPyConnection, kind: str) -> None:
    extension = _EXTENSIONS[kind]
    try:
        connection.execute(f"LOAD {_packaged(extension) or extension}")
    except duckdb.Error as error:
        needed = f"{_NAMES[kind]} is read with DuckDB's extension {extension}, which comes with vfedsec[databases]"
        raise origin.error(f"{needed}: {reason_of(error)}") from None


def _packaged(extension: str) -> str | None:
    """The extension's file, where a package brings it for this version of DuckDB."""
    try:
        folder = resources.files(f"duckdb_extension_{extension}")
    except ModuleNotFoundError:
        return None
    file = folder / "extensions" / f"v{duckdb.__version__}" / f"{extension}.duckdb_extension"
    return literal(str(file)) if file.is_file() else None
