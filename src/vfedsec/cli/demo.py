"""`vfedsec demo`: a made-up bank, two telephone companies and a retailer, from nothing to a comparison in a minute."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.options import new_command, whole_number
from vfedsec.cli.output import check_writable, json_text, print_json, progress_console, result_console

if TYPE_CHECKING:
    from rich.console import Console

    from vfedsec.cli.options import Commands
    from vfedsec.config.job import Job
    from vfedsec.experiments.comparison import Comparison, Name

_RESULTS, _TRACE, _CURVES = "results.json", "trace.jsonl", "curves.png"
_LEGEND: tuple[Name, ...] = ("pooled", "pad", "discard", "alone")


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "demo",
        run,
        summary="see it work on made-up data, in under a minute",
        about="Write a folder with a whole federation in it: a bank, two telephone companies, a retailer, and their "
        "job. Then train from those files while parties keep dropping out, and compare with what the bank can do "
        "alone, with dropping the rounds that lose a party, and with all columns in one place. The folder also gets "
        f"{_RESULTS}, {_TRACE} (of the padded run) and, with the extra 'plots', {_CURVES}.",
    )
    parser.add_argument("--folder", type=Path, default=Path("demo"), metavar="DIR", help="where to (demo)")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="of people and of training (7)")
    parser.add_argument("--customers", type=int, default=20_000, metavar="N", help="of the bank (20000)")
    parser.add_argument("--epochs", type=whole_number(1, 10_000), default=8, metavar="N", help="of training (8)")
    parser.add_argument(
        "--word-bits",
        type=int,
        choices=(16, 32),
        default=32,
        help="width of masked words; 16 halve the upload of embeddings (32)",
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    import torch

    from vfedsec.data.demo import write_demo

    torch.set_num_threads(1)
    folder, console = arguments.folder, progress_console()
    job_file = write_demo(
        folder, arguments.seed, arguments.customers, epochs=arguments.epochs, word_bits=arguments.word_bits
    )
    for name in (_RESULTS, _TRACE, _CURVES):
        check_writable(folder / name)
    console.print(f"The demo's tables and job are in {folder}.", soft_wrap=True)
    job, comparison = _compare(job_file, console)
    written = _write(folder, job, comparison)
    _print(arguments, job, comparison)
    console.print(f"Written to {folder}: {', '.join(written)}.", soft_wrap=True)
    if _CURVES not in written:
        console.print("The curves can be drawn where matplotlib is installed: pip install matplotlib")
    return 0


def _compare(job_file: Path, console: Console) -> tuple[Job, Comparison]:
    from vfedsec import trace
    from vfedsec.dashboard.tables import names_of
    from vfedsec.dashboard.terminal import RunView
    from vfedsec.engines.simulation import Options, Simulation
    from vfedsec.experiments.comparison import compare

    with contextlib.closing(trace.TraceFile(job_file.with_name(_TRACE))) as file, RunView(console) as view:
        view.say("reading the tables")
        # Nothing is remembered: every demo counts the bytes of a whole run.
        options = Options(sink=view, tap=view.tap, memory=lambda name: None)
        simulation = Simulation.from_files(job_file, options)
        view.say("greeting the parties")
        simulation.prepare()
        names = names_of(simulation.job.active.party)

        def listen(name: Name) -> trace.Sink:
            if name in ("alone", "pooled"):
                view.say(names[name])
                return trace.ignore
            view.watch(simulation.job, names[name])
            return trace.both(view, file) if name == "pad" else view

        return simulation.job, compare(simulation, listen)


def _write(folder: Path, job: Job, comparison: Comparison) -> list[str]:
    """What can be looked at later; the names of the files."""
    from vfedsec.dashboard.tables import names_of
    from vfedsec.dashboard.words import metric_name
    from vfedsec.experiments.plots import Curve, can_plot, draw_curves
    from vfedsec.experiments.report import comparison_report

    (folder / _RESULTS).write_text(json_text(comparison_report(job, comparison)) + "\n", encoding="utf-8")
    if not can_plot():
        return [_RESULTS, _TRACE]
    names = names_of(job.active.party)
    contestants = comparison.contestants()
    curves = [Curve(names[name], contestants[name].history) for name in _LEGEND if name in contestants]
    share = f"{100 * job.simulation.drop_probability:.0f} %"
    title = f"What a federation brings to the {job.active.party} while {share} of rounds lose a party"
    draw_curves(folder / _CURVES, curves, comparison.metric, metric_name(comparison.metric), title)
    return [_RESULTS, _TRACE, _CURVES]


def _print(arguments: argparse.Namespace, job: Job, comparison: Comparison) -> None:
    from vfedsec.dashboard.tables import comparison_table
    from vfedsec.experiments.report import comparison_summary

    if arguments.json:
        print_json(comparison_summary(comparison))
    else:
        console = result_console()
        console.print()
        console.print(comparison_table(comparison, job.active.party))
        console.print()
