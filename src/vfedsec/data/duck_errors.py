"""What DuckDB refuses, told without the cells that its own messages show."""

from __future__ import annotations

import re

import duckdb

from vfedsec.data.origin import Origin
from vfedsec.errors import DataError

_LINE = re.compile(r"Error on Line: (\d+)")
_WIDTHS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
# These quote names, keywords and files, and never a cell.
_TELLING = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.IOException,
    duckdb.PermissionException,
)
_ADDRESS = re.compile(r"postgres(?:ql)?://.*")
_JSON_PLACE = re.compile(r"[^'\"]*\"[^\"]*\",(?: at byte \d+)? in (line|record)\S* (\d+)")
_CELL = re.compile(r"['\"()\[{]|(?<!\w)[-+]?\.?\d")
_CSV_REASONS = {
    "Maximum line size": "the row is longer than what DuckDB reads, 2 MB",
    "Invalid unicode": "the row is not UTF-8 text",
    "unterminated quote": "the row is not valid CSV: a quote is out of place",
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def refusal(origin: Origin, error: duckdb.Error, *, blank_lines: int = 0) -> DataError:
    """What to raise about a source instead; `blank_lines` stand before the header of a CSV file."""
    if line := _LINE.search(str(error)):
        # DuckDB counts the header, blank lines too, and a row that spans several lines once.
        return origin.error(_csv_reason(str(error)), row=int(line[1]) - blank_lines - 2)
    return origin.error(reason_of(error))


def reason_of(error: duckdb.Error) -> str:
    """Why, in one line, without cells and without addresses, in which passwords can stand."""
    return _reason(error, str(error))


def connection_reason(error: duckdb.Error, address: str, shown: str) -> str:
    """Why a database cannot be reached, quoting only what stands in its address as it is shown: libpq quotes parts of
    passwords that it cannot read."""
    reason = _reason(error, str(error).replace(address, "..."))
    return _QUOTED.sub(lambda quote: quote[0] if quote[0][1:-1] in shown else "...", reason)


def _reason(error: duckdb.Error, message: str) -> str:
    if "state machine reached an invalid state" in message:
        return "the file is not valid CSV: its lines do not all end alike, or a quote is out of place"
    message = _ADDRESS.sub("...", message).removeprefix("Invalid Input Error: ")
    first = (message.splitlines() or [""])[0]
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"there is not enough memory or temporary disk to read it: {first}"
    # What a server says of its own tables can quote a cell, whatever the error is.
    told, server, words = first.partition("ERROR:")
    told = told if isinstance(error, _TELLING) else _without_cells(told)
    return f"{told.rstrip()} {server}{_without_cells(words)}" if server else told


def _without_cells(message: str) -> str:
    """Up to where a cell could begin: in quotes, in brackets, or as a number. A cell can hold quotes and line ends."""
    first = (message.splitlines() or [""])[0]
    told = _CELL.split(first, maxsplit=1)[0].rstrip()
    if place := _JSON_PLACE.match(first):
        return f"{told} ... near {place[1]} {place[2]}"  # DuckDB's count can be one off
    return told if told == first.rstrip() else f"{told} ..."


def _csv_reason(message: str) -> str:
    if widths := _WIDTHS.search(message):
        return f"the row has {widths[2]} fields, the header {widths[1]}"
    # The row itself stands between, and what DuckDB would advise behind.
    told = message.partition("Possible fixes:")[0]
    return next((reason for words, reason in _CSV_REASONS.items() if words in told), "the row is not valid CSV")
