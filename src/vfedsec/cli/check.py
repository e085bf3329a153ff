"""`vfedsec check`: is this job sound, and what would it ask of everybody?"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.check_party import check_party_file
from vfedsec.cli.options import add_job, new_command
from vfedsec.cli.output import result_console, warn

if TYPE_CHECKING:
    from rich.table import Table

    from vfedsec.cli.options import Commands
    from vfedsec.config.job import Job
    from vfedsec.data.encoding import Encoder
    from vfedsec.quantization import FixedPoint

_FILES = ", and so are the files and tables of its parties."
_SUSPECT = 0.5
"""A categorical column with more different texts than this share of its values looks like names."""
_NO_FILES = ". It names no files of parties, so none were looked at."
_UPDATE = "An update is 4 B a parameter of the bottom model, summed blindly in its group."


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "check",
        run,
        summary="check a job and the files of its parties, or a party's own file, without training",
        about="Check a job, and where it names its parties' files also these and their tables. Prints who takes part, "
        "which columns of the embedding they share, how numbers are carried, and what each party sends in a round. Of "
        "a party's own file, prints what its columns are read as, how many features each makes, and the first five "
        "rows: for its owner's own terminal.",
    )
    add_job(parser, what="the job file, or a party's own")


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    from vfedsec.config.load import is_party_file, load_job
    from vfedsec.errors import naming
    from vfedsec.experiments.traffic import traffic
    from vfedsec.models.registry import check_networks
    from vfedsec.quantization import plan

    if is_party_file(arguments.job):
        check_party_file(Path(arguments.job))
        return 0
    job = load_job(arguments.job)
    encoded: dict[str, Encoder] = {}
    with naming(file=str(arguments.job)):
        numbers = plan(job)
        check_networks(job, arguments.allow_package)
        if job.parties:
            encoded = _check_parties(job, arguments)
    console = result_console()
    console.print(f"Job {job.name!r} is sound{_FILES if job.parties else _NO_FILES}\n", markup=False)
    console.print(f"security   {job.security.mode}, new keys every {job.security.rekey_every} rounds")
    console.print(f"embedding  {_numbers(numbers.embedding)}")
    console.print(f"updates    {_numbers(numbers.update)}\n")
    console.print(_table(job, encoded))
    if any(sent.sends_update for sent in traffic(job).values()):
        console.print(f"\n{_UPDATE}")
    return 0


def _check_parties(job: Job, arguments: argparse.Namespace) -> dict[str, Encoder]:
    """Everything that a simulation would do before its first round, but for the alignment; how each party encodes."""
    from vfedsec.data.encoders import encoders
    from vfedsec.engines.files import party_files, table_of
    from vfedsec.engines.simulation import Options, Simulation

    files = party_files(job, Path(arguments.job))
    tables = {name: table_of(job, name, *file) for name, file in files.items()}
    options = Options(allowed_packages=tuple(arguments.allow_package))
    simulation = Simulation.from_tables(job, tables, files=files, options=options)
    encoded = encoders(job, tables)
    for name, encoder in encoded.items():
        simulation.check_network(name, encoder.width)
    _warn_of_texts(job, encoded)
    return encoded


def _warn_of_texts(job: Job, encoded: Mapping[str, Encoder]) -> None:
    for group in job.groups:
        if len(group.parties) > 1:
            for column, share in encoded[group.parties[0]].variety().items():
                if share > _SUSPECT:
                    warn(
                        f"column {column!r} holds mostly different texts, and all parties of {group.name} are told all"
                    )


def _numbers(numbers: FixedPoint) -> str:
    return (
        f"{numbers.word_bits}-bit words; [-{numbers.clip:g}, {numbers.clip:g}] is spread over "
        f"2^{numbers.range_bits} integers"
    )


def _table(job: Job, encoded: Mapping[str, Encoder]) -> Table:
    from rich.text import Text

    from vfedsec.dashboard.tables import new_table
    from vfedsec.dashboard.words import bytes_text
    from vfedsec.experiments.traffic import traffic
    from vfedsec.protocol.roles import Roles

    roles = Roles(job)
    table = new_table("Who takes part", "party", "role", "columns", "encoded", "embedding", "sends a round")
    table.columns[1].justify = "left"
    for party, sent in traffic(job).items():
        is_active = party == roles.active
        columns = job.active.columns if is_active else roles.group_of(party).columns
        share = slice(0, roles.width) if is_active else roles.slices[roles.slice_of(party)]
        update = " + update" if sent.sends_update else ""
        table.add_row(
            Text(party),
            Text("active" if is_active else f"group {roles.group_of(party).name}"),
            str(len(columns)),
            str(encoded[party].width) if party in encoded else "?",
            f"{share.start}-{share.stop - 1}",
            bytes_text(sent.total) + update,
        )
    return table
