"""The head of a CSV file: what its columns are called, what stands between them, and how DuckDB is to read the rest."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vfedsec.data.duck import literal
from vfedsec.data.origin import Origin

_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'(^|[,;\t|]) *"(?:[^"]|"")*"')
_LONGEST_HEADER = 1 << 20


@dataclass(frozen=True)
class CsvHead:
    """Of one file."""

    names: list[str]
    delimiter: str
    blank_lines: int
    """Before the header."""

    def relation(self, pattern: str) -> str:
        """What DuckDB selects from: every column a text, by its place."""
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(self.names)))
        options = (
            f"delim={literal(self.delimiter)}, quote='\"', escape='\"', header=true, skip={self.blank_lines}, "
            f"auto_detect=false, strict_mode=true, columns={{{columns}}}"
        )
        return f"read_csv({literal(pattern)}, {options})"


def head_of(origin: Origin, path: Path) -> CsvHead:
    """Raises `DataError` when the file cannot be read, is empty, or is no text."""
    data = _first_bytes(origin, path)
    if len(data) == _LONGEST_HEADER and not {*data[:-1]} & {*b"\r\n"}:
        raise origin.error(f"the header is longer than {_LONGEST_HEADER} bytes")
    text = _decoded(origin, data)
    lines = text.splitlines(keepends=True)
    blank = next((place for place, line in enumerate(lines) if line.strip()), None)
    if blank is None:
        raise origin.error("the file is empty")
    try:
        delimiter = _delimiter(lines[blank])
        names = _header(lines[blank:], delimiter)
    except csv.Error as error:
        raise origin.error(f"the header is not valid CSV: {error}") from None
    return CsvHead([name.strip() for name in names], delimiter, blank)


def check_header(origin: Origin, names: Sequence[str], wanted: Sequence[str]) -> None:
    """Raises `DataError` when a wanted name stands in the header more than once."""
    for name in wanted:
        if (times := names.count(name)) > 1:
            raise origin.error(f"the header names this column {times} times", column=name)


def _first_bytes(origin: Origin, path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(_LONGEST_HEADER)
    except (OSError, EOFError, zlib.error) as error:
        raise origin.error(f"the file cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _decoded(origin: Origin, data: bytes) -> str:
    if b"\0" in data:
        raise origin.error("the file holds zero bytes, so it is no text")
    try:
        # The last letter may be cut in two.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise origin.error(f"line {line} is not UTF-8 text") from None


def _header(lines: Sequence[str], delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter, strict=True))


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=_QUOTED.sub(r"\1", line).count)
