"""The files that a simulation reads: every party's own, and the table it names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.config.load import load_party
from vfedsec.config.party import PartyFile
from vfedsec.data.sources import files_named, load, shown_source
from vfedsec.data.table import Table
from vfedsec.engines.folder_memory import FolderMemory
from vfedsec.errors import ConfigError


def party_files(job: Job, path: Path) -> dict[str, tuple[PartyFile, Path]]:
    """Each party's own file and the folder it stands in. Raises `ConfigError`."""
    files = {}
    for name in (job.active.party, *job.passive_parties):
        if name not in job.parties:
            raise ConfigError(
                f"expected the file of every party, found none for {name!r}", file=str(path), key="parties"
            )
        party_path = path.parent / job.parties[name]
        party = load_party(party_path)
        if party.name != name:
            raise ConfigError(
                f"expected {name!r}, as the job says, found {party.name!r}", file=str(party_path), key="name"
            )
        files[name] = (party, party_path.parent)
    return files


def files_read(job: Job, path: Path) -> list[Path]:
    """Every file that a simulation of this job reads: the job's own, and its parties' with what they name."""
    named = [path]
    for name, (party, base) in party_files(job, path).items():
        named += [path.parent / job.parties[name], *files_named(party.data, base)]
        named += [base / party.identity] if party.identity else []
    return named


def memory_of(name: str, files: Mapping[str, tuple[PartyFile, Path]], sink: trace.Sink) -> FolderMemory | None:
    """What a party remembers by, as its file says; its warnings go into the trace."""
    if name not in files or not files[name][0].remember:
        return None
    party, base = files[name]
    data = party.data
    # As the file says it, from wherever the job is started.
    table = "\n".join((shown_source(data, Path()), data.table, data.query, *data.arrays.values()))
    return FolderMemory(base / party.remember, table, lambda message: sink(trace.Warned(name, message)))


def table_of(job: Job, name: str, party: PartyFile, base: Path) -> Table:
    """The columns of a party's table that the job asks for."""
    if name == job.active.party:
        return load(party, base, job.active.columns, True)
    columns = next(group.columns for group in job.groups if name in group.parties)
    return load(party, base, columns, False)
