"""`vfedsec bench`: what security costs on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vfedsec.cli.options import new_command
from vfedsec.cli.output import print_json, progress_console, result_console

if TYPE_CHECKING:
    from vfedsec.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "bench",
        run,
        summary="measure what security costs on this machine",
        about="Measure what security costs on this machine: the Secure Layer by itself, or whole training runs with "
        "it, without it, and without a federation. Other work on the machine disturbs it.",
    )
    parser.add_argument("what", choices=sorted(_BENCHES), help="what to measure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    if not arguments.json:
        progress_console().print("measuring ...")
    figures = _BENCHES[arguments.what]()
    if arguments.json:
        print_json(figures)
    else:
        _print_table(arguments.what, figures)
    return 0


def _secure_layer() -> Mapping[str, Any]:
    from vfedsec.experiments import bench_secure_layer

    return bench_secure_layer.run()


def _training() -> Mapping[str, Any]:
    from vfedsec.experiments import bench_training

    return bench_training.run()


_BENCHES = {"secure-layer": _secure_layer, "training": _training}


def _print_table(what: str, figures: Mapping[str, Any]) -> None:
    from vfedsec.dashboard.tables import new_table

    table = new_table(f"bench {what}", "figure", "value")
    for name, value in _flat(figures):
        table.add_row(name.replace("_", " "), f"{value:.4g}")
    result_console().print(table)


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}: ")
        else:
            yield prefix + name, float(value)
