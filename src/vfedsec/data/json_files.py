"""JSON as DuckDB is to read it: numbers and booleans as what they are, and texts as texts.

Left to itself, DuckDB takes texts for dates, times of day and UUIDs, by rules of its own: `1-2-3` is then the third of
February 2001, `epoch` a day of 1900, and a UUID an id in lower case.
"""

from __future__ import annotations

import re

import duckdb

from vfedsec.data.duck import literal
from vfedsec.data.duck_errors import refusal
from vfedsec.data.origin import Origin

_GUESSED = ("DATE", "TIME", "TIMESTAMP", "UUID")
_NUMBERED = re.compile(r"(.+)_\d+")


def json_relation(origin: Origin, connection: duckdb.DuckDBPyConnection, file: str) -> str:
    """What DuckDB selects from. Raises `DataError` when the file cannot be read."""
    options = "sample_size=-1, map_inference_threshold=-1, field_appearance_threshold=0"
    guessed = f"read_json({file}, {options})"
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {guessed}").fetchall()
    except duckdb.Error as error:
        raise refusal(origin, error) from None
    types = {str(name): str(kind) for name, kind, *_ in described}
    if _are_made_up(types) or not any(kind.startswith(_GUESSED) for kind in types.values()):
        return guessed
    columns = ", ".join(
        f"{literal(name)}: {literal('VARCHAR' if kind.startswith(_GUESSED) else kind)}" for name, kind in types.items()
    )
    return f"read_json({file}, columns={{{columns}}})"


def _are_made_up(names: dict[str, str]) -> bool:
    """Whether the names may be DuckDB's own: of values without keys, or of keys that differ in case alone, which it
    numbers. It would find nothing under them."""
    lower = {name.lower() for name in names}
    is_numbered = any((match := _NUMBERED.fullmatch(name)) and match[1] in lower for name in lower)
    return is_numbered or list(names) == ["json"]
