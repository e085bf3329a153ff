"""Bank Marketing and Adult from the files that their authors publish.

Both call a missing value `?`; Bank Marketing has none, its `unknown` is a category among others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from vfedsec.data.datasets.catalogue import KnownTable
from vfedsec.errors import DataError

MISSING = "?"
"""What stands for a missing value, in the files and in a `TableDataset`."""

Rows = list[list[str]]
"""The cells of every row in the order of the columns, the label last."""


def read_rows(known: KnownTable, paths: Sequence[Path], contents: Sequence[bytes]) -> Rows:
    """The rows of all files, one after the other. Raises `DataError` where a file is not of the known form."""
    rows = []
    for path, content in zip(paths, contents, strict=True):
        try:
            rows += _PARSERS[known.key](known, content.decode("ascii"))
        except (ValueError, csv.Error) as error:  # a UnicodeDecodeError is a ValueError
            raise DataError(f"{path}: expected the table as published, found: {error}") from None
    return rows


def _parse_bank(known: KnownTable, text: str) -> Rows:
    records = _of_width(len(known.columns) + 1, csv.reader(text.splitlines(), delimiter=";", strict=True))
    expected = [*known.columns, known.label]
    if not records or records[0] != expected:
        raise ValueError(f"a header other than {';'.join(expected)}")
    return records[1:]


def _parse_adult(known: KnownTable, text: str) -> Rows:
    # adult.test begins with a line about cross validation and ends its labels with a dot.
    lines = (line for line in text.splitlines() if line and not line.startswith("|"))
    records = _of_width(len(known.columns) + 1, csv.reader(lines, skipinitialspace=True, strict=True))
    return [[*(cell.strip() for cell in cells), label.strip().removesuffix(".")] for *cells, label in records]


def _of_width(width: int, records: Iterable[list[str]]) -> Rows:
    rows = list(records)
    for place, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"{len(row)} cells instead of {width} in row {place}")
    return rows


_PARSERS: dict[str, Callable[[KnownTable, str], Rows]] = {"bank": _parse_bank, "adult": _parse_adult}
