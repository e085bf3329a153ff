"""`vfedsec bench`: what security and an alignment cost on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vfedsec.cli.options import new_command, whole_number
from vfedsec.cli.output import print_json, progress_console, result_console
from vfedsec.errors import ConfigError

if TYPE_CHECKING:
    from vfedsec.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "bench",
        run,
        summary="measure what security and an alignment cost on this machine",
        about="Measure what security costs on this machine: the Secure Layer by itself, or whole training runs with "
        "it, without it, and without a federation; or the alignment of two tables, beside bare calls of the library "
        "that does its curve. Other work on the machine disturbs it.",
    )
    parser.add_argument("what", choices=sorted(_BENCHES), help="what to measure")
    parser.add_argument("--ids", type=whole_number(2, 100_000_000), metavar="N", help="of each table to align (100000)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Carry it out. Raises `ConfigError` for an option that is not of this measurement."""
    if arguments.ids is not None and arguments.what != "align":
        raise ConfigError("expected --ids with 'align' only")
    if not arguments.json:
        progress_console().print("measuring ...")
    figures = _BENCHES[arguments.what](arguments)
    if arguments.json:
        print_json(figures)
    else:
        _print_table(arguments.what, figures)
    return 0


def _align(arguments: argparse.Namespace) -> Mapping[str, Any]:
    from vfedsec.experiments import bench_align

    return bench_align.run(arguments.ids or bench_align.DEFAULT_IDS)


def _secure_layer(arguments: argparse.Namespace) -> Mapping[str, Any]:
    from vfedsec.experiments import bench_secure_layer

    return bench_secure_layer.run()


def _training(arguments: argparse.Namespace) -> Mapping[str, Any]:
    from vfedsec.experiments import bench_training

    return bench_training.run()


_BENCHES = {"align": _align, "secure-layer": _secure_layer, "training": _training}


def _print_table(what: str, figures: Mapping[str, Any]) -> None:
    from vfedsec.dashboard.tables import new_table

    table = new_table(f"bench {what}", "figure", "value")
    for name, value in _flat(figures):
        table.add_row(name.replace("_", " "), value)
    result_console().print(table)


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}: ")
        else:
            yield prefix + name, str(value).lower() if isinstance(value, bool | int) else f"{float(value):.4g}"
