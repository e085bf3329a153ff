"""Rows that DuckDB has read, and their columns as typed arrays.

The rows of one party are taken at once into DuckDB's own memory (a bounded part of it, the rest spills to a temporary
file), so that all columns are of one moment whatever else writes to the source; then they come over column by column,
and no row ever becomes a Python object of its own. A CSV file is looked through once before that, to find which of its
columns hold nothing but numbers.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from vfedsec.config.party import ColumnKind
from vfedsec.data.cells import MISSING, Column, Dates, Texts, number_text
from vfedsec.data.dates import YEARS, seconds_from_micros
from vfedsec.data.duck_errors import refusal
from vfedsec.data.origin import Origin
from vfedsec.errors import DataError

MEMORY = "512MB"
"""What DuckDB keeps in memory of a table while it is read."""

_INTEGERS = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
_WHOLE = _INTEGERS | {"INTEGER", "UINTEGER"}
_NUMBERS = _WHOLE | {"FLOAT", "DOUBLE", "DECIMAL"}
_TEXTS = {"VARCHAR", "ENUM", "UUID"}
_TIMES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}
_SPACE = " \t\n\r\v\f\u00a0"
# What both DuckDB and Python read as the same number; whatever else looks like one is left to Python.
_PLAIN_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_MISFIT = re.compile(r'of type "(\w+)" instead')
_MISFITS = {
    "text": (
        "a text stands in a column that the database declares numeric",
        "TRY_CAST(cell AS DOUBLE) IS NULL",
    ),
    "float": (
        "a number that is not whole stands in a column that the database declares whole",
        "NOT regexp_full_match(cell, '-?[0-9]+')",
    ),
}
"""What SQLite finds in a column of another type: what to say, and which cells are meant."""


@contextmanager
def connected() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory that fetches nothing from any network by itself, and keeps nothing."""
    with tempfile.TemporaryDirectory(prefix="vfedsec-") as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY,
            "temp_directory": spill,
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Several would need several times the memory for long texts, and rows of a server would come in any order.
            "threads": 1,
        }
        connection = duckdb.connect(":memory:", config=settings)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET enable_progress_bar = false")  # it would go to stdout, among the results
            yield connection
        finally:
            connection.close()


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _is_plain(cell: str) -> str:
    return f"regexp_full_match({cell}::VARCHAR, {literal(_PLAIN_NUMBER)})"


class DuckRows:
    """The rows of one relation."""

    def __init__(
        self,
        origin: Origin,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        *,
        names: Sequence[str] = (),
        blank_lines: int = 0,
    ) -> None:
        """`relation` is what stands after FROM; of a CSV file, `names` are those of its columns, and `blank_lines`
        stand before its header. Raises `DataError` when it cannot be read."""
        self._origin = origin
        self._blank_lines = blank_lines
        self._is_csv = bool(names)
        self._plain: set[str] = set()
        self._connection = connection
        self._relation = relation
        described = self._run(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        own = [name for name, *_ in described]
        self.names = list(names) or own
        self._columns = dict(zip(self.names, own, strict=True))
        types = {name: str(row[1]).split("(")[0] for name, row in zip(self.names, described, strict=True)}
        # What a column of SQLite holds without a type, and texts in Parquet that nobody marked as such.
        self._bytes = {name for name, kind in types.items() if kind == "BLOB"}
        self._types = types | dict.fromkeys(self._bytes, "VARCHAR")

    def read(self, wanted: Sequence[str], missing: Sequence[str], numeric: Collection[str]) -> None:
        """Take these columns into memory, in texts nothing in place of what stands for it; texts that are all plain
        numbers as numbers, of those columns that may be `numeric`. Raises `DataError`."""
        self._places = {name: f"c{place}" for place, name in enumerate(dict.fromkeys(wanted))}
        cells = {name: self._cleaned(name, missing) for name in self._places}
        texts = [name for name in self._places if name in numeric and self._types[name] in _TEXTS]
        if self._is_csv:
            # Reading the file once more takes less than keeping a number's text: that would not fit into the memory.
            for name in self._all_numbers({name: cells[name] for name in texts}, self._relation):
                cells[name], self._types[name] = f"({cells[name]})::DOUBLE", "DOUBLE"
        self._keep([f"{cell} AS {self._places[name]}" for name, cell in cells.items()])
        if not self._is_csv:
            self._plain = self._all_numbers({name: self._places[name] for name in texts}, "kept")

    def _keep(self, chosen: Sequence[str]) -> None:
        try:
            self._connection.execute(
                f"CREATE TEMP TABLE kept AS SELECT {', '.join(chosen) or '0 AS nothing'} FROM {self._relation}"
            )
        except duckdb.TypeMismatchException as error:
            raise self._misfit(error) from None
        except duckdb.Error as error:
            raise refusal(self._origin, error, blank_lines=self._blank_lines) from None
        except UnicodeDecodeError:  # DuckDB fails to quote a cell of bytes
            raise self._origin.error("bytes stand in a column that the database declares otherwise") from None

    def __len__(self) -> int:
        [count] = self._run("SELECT count(*) FROM kept").fetchone() or (0,)
        return int(count)

    def ids(self, name: str) -> list[str]:
        """Ids as texts, empty where missing. Raises `DataError` when they are neither texts nor whole numbers."""
        if self._types[name] not in _TEXTS | _WHOLE:
            raise self._origin.error(f"an id is a text or an integer, not {self._types[name]}", column=name)
        return self._as_texts(name)

    def label(self, name: str) -> list[str]:
        """A label column as texts, empty where missing. Raises `DataError` when it has none."""
        if self._types[name] in _NUMBERS - _WHOLE:
            values = self._numbers(name).tolist()
            return ["" if value != value else number_text(value) for value in values]
        if self._types[name] not in _TEXTS | _WHOLE | {"BOOLEAN"}:
            raise self._origin.error(f"a label is a number or a text, not {self._types[name]}", column=name)
        return self._as_texts(name)

    def column(self, name: str, declared: ColumnKind | None) -> Column:
        """A column. Raises `DataError` when its type is none of those a network can use."""
        kind = self._types[name]
        if kind in _WHOLE and declared == "categorical":
            return self._coded(name)
        if kind in _NUMBERS or name in self._plain:
            return self._numbers(name)
        if kind in _TIMES:
            return self._dates(name)
        if kind not in _TEXTS | {"BOOLEAN"}:
            if self._has_values(name):
                raise self._origin.error(f"values of type {kind} cannot be read as a column", column=name)
            return Texts.of([None] * len(self))  # JSON has no type for nothing but null
        return self._coded(name)

    def _cleaned(self, name: str, missing: Sequence[str]) -> str:
        column = quoted(self._columns[name])
        if name in self._bytes:
            column = f"decode({column})"
        if self._types[name] not in _TEXTS:
            return column
        text = f"trim({column}::VARCHAR, {literal(_SPACE)})"
        nothing = ", ".join(literal(token) for token in {"", *missing})
        is_plain = "false" if any(re.fullmatch(_PLAIN_NUMBER, token) for token in missing) else _is_plain(column)
        # A plain number has no space to trim, which takes long. Of IN, DuckDB makes a join with a table of the tokens:
        # a hundred columns of it take more than the memory.
        return (
            f"CASE WHEN {is_plain} THEN {column}::VARCHAR "
            f"WHEN list_contains([{nothing}], {text}) THEN NULL ELSE {text} END"
        )

    def _misfit(self, error: duckdb.TypeMismatchException) -> DataError:
        """SQLite lets any value stand in any column: which, and where."""
        name = next((name for name in self._places if f'column "{self._columns[name]}"' in str(error)), None)
        found = _MISFIT.findall(str(error))
        if name is None or not found:
            return refusal(self._origin, error)
        if found[-1] not in _MISFITS:
            return self._origin.error("a value is not of the type that the database declares", column=name)
        message, is_misfit = _MISFITS[found[-1]]
        self._run("SET sqlite_all_varchar = true")
        cells = f"SELECT row_number() OVER () - 1 AS row, {quoted(self._columns[name])} AS cell FROM {self._relation}"
        query = f"SELECT min(row) FROM ({cells}) WHERE cell IS NOT NULL AND {is_misfit}"
        [row] = self._run(query).fetchone() or (None,)
        return self._origin.error(message, column=name, row=row)

    def _has_values(self, name: str) -> bool:
        return self._run(f"SELECT 1 FROM kept WHERE {self._places[name]} IS NOT NULL LIMIT 1").fetchone() is not None

    def _all_numbers(self, cells: Mapping[str, str], relation: str) -> set[str]:
        """Of columns of texts, by their cells in SQL, those that have values, and all of them plain numbers."""
        if not cells:
            return set()
        plain = map(_is_plain, cells.values())
        counts = [f"count({one}), count(*) FILTER (WHERE NOT {one})" for one in plain]
        found = self._run(f"SELECT {', '.join(counts)} FROM {relation}").fetchone() or ()
        pairs = zip(cells, found[::2], found[1::2], strict=True)
        return {name for name, values, others in pairs if values and not others}

    def _numbers(self, name: str) -> NDArray[np.float64]:
        return self._floats(f"{self._places[name]}::DOUBLE", lambda values: values.astype(np.float64))

    def _dates(self, name: str) -> Dates:
        cell = self._places[name]
        first, last = YEARS
        is_far = f"NOT isfinite({cell}) OR year({cell}) NOT BETWEEN {first} AND {last}"
        query = f"SELECT min(rowid) FROM kept WHERE {cell} IS NOT NULL AND ({is_far})"
        [row] = self._run(query).fetchone() or (None,)
        if row is not None:
            raise self._origin.error(f"a date is infinite or not of the years {first} to {last}", column=name, row=row)
        return Dates(self._floats(f"epoch_us({cell}::TIMESTAMP)", seconds_from_micros))

    def _coded(self, name: str) -> Texts:
        """A column of texts as codes, which DuckDB makes: no text comes over twice."""
        cell, kind = f"{self._places[name]}::VARCHAR", f"words_{self._places[name]}"
        different = f"SELECT DISTINCT {cell} AS word FROM kept WHERE {cell} IS NOT NULL ORDER BY word"
        self._run(f"CREATE TYPE {kind} AS ENUM ({different})")
        words = self._run(f"SELECT unnest(enum_range(NULL::{kind}))::VARCHAR").fetchall()
        codes = self._fetched(f"enum_code({cell}::{kind})").astype(np.int32)
        return Texts(np.ma.filled(codes, MISSING), tuple(word for (word,) in words))

    def _as_texts(self, name: str) -> list[str]:
        cells: list[str] = self._fetched(f"coalesce({self._places[name]}::VARCHAR, '')").tolist()
        return cells

    def _floats(self, expression: str, convert: Callable[[Any], Any]) -> NDArray[np.float64]:
        values = self._fetched(expression)
        found: NDArray[np.float64] = convert(np.ma.getdata(values))
        return np.where(np.ma.getmaskarray(values), np.nan, found)

    def _fetched(self, expression: str) -> Any:
        return self._run(f"SELECT {expression} AS value FROM kept").fetchnumpy()["value"]

    def _run(self, query: str) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(query)
        except duckdb.Error as error:
            raise refusal(self._origin, error, blank_lines=self._blank_lines) from None
