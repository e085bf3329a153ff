"""`vfedsec paper partitions`: the paper's data sets, dealt to parties as in its experiments, with the jobs."""

from __future__ import annotations

import argparse
import sys
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.options import new_command
from vfedsec.cli.output import progress_console

if TYPE_CHECKING:
    from rich.console import Console

    from vfedsec.cli.options import Commands
    from vfedsec.data.datasets import ImageDataset, TableDataset
    from vfedsec.experiments.partitions.plan import Partition


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "partitions",
        run,
        summary="deal the paper's data sets to parties",
        about="Write a folder for each partition of the paper's appendix: the parties' tables, their files, and jobs. "
        "The data sets Bank Marketing, Adult, EMNIST and Fashion-MNIST are looked for in a folder, Fashion-MNIST also "
        "where Debian's package puts it; those that are not there are fetched from OpenML with scikit-learn (the extra "
        "'experiments'). The same data sets give the same bytes, and nothing else is overwritten. Prints the jobs.",
    )
    parser.add_argument("names", nargs="*", type=_name, metavar="NAME", help="the partitions, by folder (all)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where the data sets are (the variable VFEDSEC_DATA says)"
    )
    parser.add_argument(
        "--to", type=Path, default=Path("examples/paper"), metavar="DIR", help="where to (examples/paper)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    from vfedsec.cli.fetching import watched
    from vfedsec.data.datasets import load
    from vfedsec.errors import DataError
    from vfedsec.experiments.partitions.plan import PARTITIONS

    console = progress_console()
    chosen = [partition for name, partition in PARTITIONS.items() if name in (arguments.names or PARTITIONS)]
    # One data set at a time is in memory.
    refusals: list[str] = []
    for key, partitions in groupby(chosen, key=lambda partition: partition.known.key):
        try:
            dataset = load(key, arguments.data_dir, watched(console))
        except DataError as error:
            refusals.append(str(error))
            continue
        console.print(f"{dataset.name}, {len(dataset)} rows, from {dataset.source}", soft_wrap=True)
        for partition in partitions:
            _write(partition, dataset, arguments.to / partition.name, console)
    for refusal in refusals:
        print(f"error: {refusal}", file=sys.stderr)
    return 1 if refusals else 0


def _write(partition: Partition, dataset: TableDataset | ImageDataset, folder: Path, console: Console) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from vfedsec.experiments.partitions.texts import files
    from vfedsec.experiments.partitions.writing import write_tables, write_texts

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"writing {partition.name}", total=len(files(partition)) + len(partition.holdings))
        for _ in chain(write_texts(partition, folder), write_tables(partition, dataset, folder)):
            progress.advance(task)
    for job in partition.jobs:
        print(folder / f"{job.file}.toml")


def _name(text: str) -> str:
    from vfedsec.experiments.partitions.plan import PARTITIONS

    if text not in PARTITIONS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(PARTITIONS)}, got {text!r}")
    return text
