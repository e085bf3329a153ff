"""`vfedsec simulate`: a whole federation in one process, from the files its parties would have."""

from __future__ import annotations

import argparse
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.options import add_job, new_command, whole_number
from vfedsec.cli.output import check_outputs, print_json, progress_console, result_console, warn

if TYPE_CHECKING:
    from vfedsec.cli.options import Commands
    from vfedsec.dashboard.terminal import RunView
    from vfedsec.engines.simulation import Result, Simulation
    from vfedsec.experiments.history import HistoryRecorder
    from vfedsec.trace import Sink


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "simulate",
        run,
        summary="train a job, all parties in this process",
        about="Train a job with all its parties in this process. They exchange the very bytes that they would over a "
        "network, and drop out as the job's [simulation] says.",
    )
    add_job(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write every event to FILE, a JSON object a line")
    parser.add_argument(
        "--predictions", type=Path, metavar="FILE", help="write the prediction for every aligned row to FILE, as CSV"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the evaluations to FILE, a PNG")
    parser.add_argument(
        "--threads", type=whole_number(1, 1024), default=1, metavar="N", help="threads that torch uses (1)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    _check(arguments)
    import torch

    from vfedsec.dashboard.terminal import RunView
    from vfedsec.experiments.history import HistoryRecorder
    from vfedsec.trace import both

    torch.set_num_threads(arguments.threads)
    recorder = HistoryRecorder()
    with contextlib.ExitStack() as stack:
        view = stack.enter_context(RunView(progress_console()))
        sink = both(recorder, view)
        if arguments.trace:
            sink = both(sink, _trace_file(stack, arguments.trace))
        simulation = _prepared(arguments, view, sink)
        view.watch(simulation.job)
        start = time.perf_counter()
        result = simulation.train()
        seconds = time.perf_counter() - start
        if arguments.predictions:
            view.say("predicting")
            _predict(simulation, arguments.predictions)
        simulation.finish()
    if arguments.plot:
        _plot(arguments.plot, simulation, recorder)
    if result.tally.dropped == result.tally.rounds:
        warn("no round could be used: the network is as it was drawn")
    _print(arguments, simulation, result, seconds)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    from vfedsec.config.load import load_job
    from vfedsec.engines.files import files_read

    outputs = {"--trace": arguments.trace, "--predictions": arguments.predictions, "--plot": arguments.plot}
    check_outputs(outputs, files_read(load_job(arguments.job), Path(arguments.job)))
    if arguments.plot:
        from vfedsec.experiments.plots import check_plots

        check_plots(arguments.plot)


def _trace_file(stack: contextlib.ExitStack, path: Path) -> Sink:
    from vfedsec.trace import TraceFile

    return stack.enter_context(contextlib.closing(TraceFile(path)))


def _prepared(arguments: argparse.Namespace, view: RunView, sink: Sink) -> Simulation:
    from vfedsec.engines.simulation import Options, Simulation

    view.say("reading the tables")
    options = Options(sink=sink, tap=view.tap, allowed_packages=tuple(arguments.allow_package))
    simulation = Simulation.from_files(arguments.job, options)
    view.say("greeting the parties")
    simulation.prepare()
    if not view.has_aligned:
        view.note("the rows match as the parties remember them: their ids are those of an earlier run")
    held = simulation.rows_held()
    active, *passive = held.items()
    view.note(f"{active[0]} has {active[1]} rows to use; held by " + ", ".join(f"{n}: {rows}" for n, rows in passive))
    for party, rows in passive:
        if not rows:
            view.note(f"warning: {party} holds none of them, so its columns cannot help", "yellow")
    return simulation


def _predict(simulation: Simulation, path: Path) -> None:
    from vfedsec.experiments.predictions import write_predictions

    write_predictions(path, simulation.job.task, simulation.predict())


def _plot(path: Path, simulation: Simulation, recorder: HistoryRecorder) -> None:
    from vfedsec.dashboard.words import metric_name
    from vfedsec.experiments.plots import Curve, draw_curves
    from vfedsec.metrics import main_metric

    metric = main_metric(simulation.job.task.kind)[0]
    curves = [Curve(f"federated, {simulation.job.dropout.policy}", recorder.points)]
    draw_curves(path, curves, metric, metric_name(metric), simulation.job.name)


def _print(arguments: argparse.Namespace, simulation: Simulation, result: Result, seconds: float) -> None:
    from vfedsec.dashboard.tables import cost_table, metrics_table, phase_table
    from vfedsec.experiments.report import run_report

    if arguments.json:
        print_json(run_report(simulation.job, result, seconds))
        return
    console = result_console()
    console.print()
    console.print(metrics_table(result.metrics))
    console.print()
    console.print(cost_table(result.meter, simulation.roles.parties))
    console.print()
    console.print(phase_table(result.meter, simulation.roles.parties))
