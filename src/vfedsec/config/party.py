"""What a party's own file says: where its table is and who it is. It never leaves the party."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

ColumnKind = Literal["numeric", "categorical", "boolean", "date", "image"]
Secret = Annotated[str, msgspec.Meta(description="shown in no message and no repr")]


class DataSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The party's table."""

    source: str = ""
    """A file, relative to this one: `.csv`, `.tsv`, `.txt`, `.parquet`, `.json`, `.jsonl`, `.ndjson` (texts also as
    `.gz`), a SQLite database (`.sqlite`, `.sqlite3`, `.db`), or arrays (`.npz`); or a PostgreSQL database,
    `postgresql://user@host/name` (a password belongs into libpq's own password file or environment). Instead of it:
    `query`, or `arrays`."""
    table: str = ""
    """Which table of a database, with its schema if that is not the usual one; needed where there are several."""
    query: str = ""
    """One SQL query (of DuckDB), over files relative to this one and over what `attach` names."""
    attach: dict[str, str] = {}
    """Databases for the query by the names it gives them: SQLite files, or `postgresql://` addresses."""
    arrays: dict[str, str] = {}
    """Columns by name, each from an array file of its own: IDX (also as `.gz`) or `.npy`. The first axis is the row."""
    id: str
    """The column that tells whose row it is; `#`: the number of the row, where all parties' rows stand in one order."""
    label: str = ""
    """The column to predict; the active party's only."""
    missing: tuple[str, ...] = ("", "NA", "NaN", "nan", "null", "None", "?")
    """Texts that stand for a missing value."""
    kinds: dict[str, ColumnKind] = {}
    """Kinds, `numeric`, `categorical`, `boolean`, `date` or `image`, of columns whose kind should not be inferred."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Everything but what an address can hold: a password."""
        hidden = {"query", "attach"} | ({"source"} if "://" in self.source else set())
        return [(name, "..." if name in hidden else getattr(self, name)) for name in self.__struct_fields__]

    def __repr__(self) -> str:
        return f"DataSource({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class PartyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole party file."""

    name: str
    """As the job knows it."""
    data: DataSource
    identity: str = ""
    """Path of the Ed25519 private key (PEM), relative to this file. A simulation needs none."""
    seed: Secret = ""
    """Secret text from which this party draws its first weights (the first party of a group: those of
    the group), its order of rows, its rounding and, the active one, what is held out; left out, a
    simulation derives one from the job's seed."""

    remember: str = ".vfedsec"
    """A folder, relative to this file, for what is remembered of the alignment, so that the next run with the same
    tables skips it: which rows matched and the secret order of rows, no ids. Empty: nothing is remembered, by the
    party at the other end either."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Everything but the seed."""
        return [("name", self.name), ("data", self.data), ("identity", self.identity), ("remember", self.remember)]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"PartyFile({shown}, seed=...)"
