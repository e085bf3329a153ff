"""Whether a simulation was given one thing for every party, and each party its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vfedsec.config.job import Job
from vfedsec.data.table import Table
from vfedsec.errors import ConfigError


def check_complete(job: Job, given: Collection[str], what: str) -> None:
    """Raises `ConfigError` when a party of the job has none, or a stranger has one."""
    names = (job.active.party, *job.passive_parties)
    if missing := [name for name in names if name not in given]:
        raise ConfigError(f"expected {what} for every party, found none for {', '.join(missing)}")
    if strangers := [name for name in given if name not in names]:
        raise ConfigError(f"expected {what} for every party of the job, found one for {', '.join(strangers)}")


def check_tables(job: Job, tables: Mapping[str, Table]) -> None:
    """Raises `ConfigError` unless every party has its own table."""
    check_complete(job, tables, "a table")
    for name, table in tables.items():
        if not isinstance(table, Table):  # a notebook is not type-checked
            raise ConfigError(f"expected the Table of {name}, found a value of type {type(table).__name__}")
        if table.party != name:
            raise ConfigError(f"expected the table of {name}, found that of {table.party}")
