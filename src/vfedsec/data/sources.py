"""Reading a party's table from where its party file says it is.

A reader turns a source into named columns of texts; `_READERS` picks one by the source's suffix,
and everything after it (ids, missing values, labels) is the same for all of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vfedsec.config.party import DataSource, PartyFile
from vfedsec.data.table import Column, Table, Texts, data_error
from vfedsec.errors import DataError

_DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class _Source:
    """A place to read from, and whose it is."""

    party: str
    path: Path

    def error(self, message: str, *, column: str = "", row: int | None = None) -> DataError:
        return data_error(self.party, str(self.path), message, column=column, row=row)


_Reader = Callable[[_Source, Sequence[str]], dict[str, Sequence[str]]]


def load(party_file: PartyFile, base: Path, columns: Sequence[str], with_label: bool) -> Table:
    """The named columns of a party's table, with its label column if asked for.

    Raises `DataError` when the source cannot be read or lacks an id, a column or a label that is
    needed.
    """
    data = party_file.data
    source = _Source(party_file.name, base / data.source)
    _check_roles(source, data, columns, with_label)
    wanted = [data.id, *columns, *([data.label] if with_label else []), *data.kinds]  # a kind of nothing is a slip
    cells = _reader(source)(source, wanted)
    features: dict[str, Column] = {name: _without(data.missing, cells[name]) for name in columns}
    return Table(
        party=party_file.name,
        ids=[cell or "" for cell in _without(data.missing, cells[data.id])],
        columns=features,
        label=[c or "" for c in _without(data.missing, cells[data.label])] if with_label else None,
        source=str(source.path),
        kinds=data.kinds,
    )


def _check_roles(source: _Source, data: DataSource, columns: Sequence[str], with_label: bool) -> None:
    if with_label and not data.label:
        raise source.error("a label is needed, and the party file names no label column")
    for role, name in (("id", data.id), ("label", data.label)):
        if name and name in columns:
            raise source.error(f"the {role} column is also listed as a feature", column=name)


def _without(missing: Sequence[str], cells: Sequence[str]) -> Texts:
    tokens = frozenset(missing) | {""}
    stripped = map(str.strip, cells)
    return [None if cell in tokens else cell for cell in stripped]


def _reader(source: _Source) -> _Reader:
    suffix = source.path.suffix.lower()
    if suffix not in _READERS:
        known = ", ".join(sorted(_READERS))
        raise source.error(f"files that end in {suffix!r} cannot be read; supported: {known}")
    return _READERS[suffix]


def _read_csv(source: _Source, wanted: Sequence[str]) -> dict[str, Sequence[str]]:
    records = _records(source, _decoded(source))
    if not records:
        raise source.error("the file is empty")
    header = [name.strip() for name in records[0]]
    positions = {name: _position(source, header, name) for name in wanted}
    rows = records[1:]
    _check_widths(source, len(header), rows)
    if not rows:
        raise source.error("the file has a header and no rows")
    by_column = list(zip(*rows, strict=True))
    return {name: by_column[position] for name, position in positions.items()}


def _decoded(source: _Source) -> str:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise source.error(f"the file cannot be read: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise source.error(f"line {line} is not UTF-8 text") from None
    if "\0" in text:
        raise source.error("the file holds zero bytes, so it is no text")
    return text


def _records(source: _Source, text: str) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=_delimiter(text), strict=True)
    try:
        return [record for record in reader if record]
    except csv.Error as error:
        raise source.error(f"line {reader.line_num} is not valid CSV: {error}") from None


def _delimiter(text: str) -> str:
    header = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))


def _position(source: _Source, header: list[str], name: str) -> int:
    times = header.count(name)
    if times == 0:
        raise source.error(f"there is no such column; the file has {header}", column=name)
    if times > 1:
        raise source.error(f"the header names this column {times} times", column=name)
    return header.index(name)


def _check_widths(source: _Source, width: int, rows: Sequence[Sequence[str]]) -> None:
    for index, row in enumerate(rows):
        if len(row) != width:
            message = f"the row has {len(row)} fields, the header {width}"
            raise source.error(message, row=index)


_READERS: dict[str, _Reader] = {".csv": _read_csv, ".tsv": _read_csv, ".txt": _read_csv}
