"""`vfedsec check`: is this job sound, and what would it ask of everybody?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from vfedsec.cli.options import add_job, new_command
from vfedsec.cli.output import result_console

if TYPE_CHECKING:
    from rich.table import Table

    from vfedsec.cli.options import Commands
    from vfedsec.config.job import Job
    from vfedsec.quantization import FixedPoint

_FILES = ", and so are the files and tables of its parties."
_NO_FILES = ". It names no files of parties, so none were looked at."
_UPDATE = "An update is 4 B a parameter of the bottom model, summed blindly in its group."


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "check",
        run,
        summary="check a job and the files of its parties, without training",
        about="Check a job, and where it names its parties' files also these and their tables. Prints who takes part, "
        "which columns of the embedding they share, how numbers are carried, and what each party sends in a round.",
    )
    add_job(parser)


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    from vfedsec.config.load import load_job
    from vfedsec.errors import naming
    from vfedsec.experiments.traffic import traffic
    from vfedsec.models.registry import check_networks
    from vfedsec.quantization import plan

    job = load_job(arguments.job)
    with naming(file=str(arguments.job)):
        numbers = plan(job)
        check_networks(job, arguments.allow_package)
    if job.parties:
        _check_parties(arguments)
    console = result_console()
    console.print(f"Job {job.name!r} is sound{_FILES if job.parties else _NO_FILES}\n", markup=False)
    console.print(f"security   {job.security.mode}, new keys every {job.security.rekey_every} rounds")
    console.print(f"embedding  {_numbers(numbers.embedding)}")
    console.print(f"updates    {_numbers(numbers.update)}\n")
    console.print(_table(job))
    if any(sent.sends_update for sent in traffic(job).values()):
        console.print(f"\n{_UPDATE}")
    return 0


def _check_parties(arguments: argparse.Namespace) -> None:
    from vfedsec.engines.simulation import Options, Simulation

    Simulation.from_files(arguments.job, Options(allowed_packages=tuple(arguments.allow_package)))


def _numbers(numbers: FixedPoint) -> str:
    return (
        f"{numbers.word_bits}-bit words; [-{numbers.clip:g}, {numbers.clip:g}] is spread over "
        f"2^{numbers.range_bits} integers"
    )


def _table(job: Job) -> Table:
    from rich.text import Text

    from vfedsec.dashboard.tables import new_table
    from vfedsec.dashboard.words import bytes_text
    from vfedsec.experiments.traffic import traffic
    from vfedsec.protocol.roles import Roles

    roles = Roles(job)
    table = new_table("Who takes part", "party", "role", "columns", "embedding", "sends a round")
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
            f"{share.start}-{share.stop - 1}",
            bytes_text(sent.total) + update,
        )
    return table
