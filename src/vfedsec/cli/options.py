"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

Run = Callable[[argparse.Namespace], int]


def new_command(commands: Commands, name: str, run: Run, *, summary: str, about: str) -> argparse.ArgumentParser:
    """A command: a line for the list of commands, and a paragraph for its own help."""
    parser = commands.add_parser(name, help=summary, description=about)
    parser.set_defaults(run=run)
    return parser


def add_job(parser: argparse.ArgumentParser, *, what: str = "the job file") -> None:
    """The job file, and whose networks it may name."""
    parser.add_argument("job", metavar="JOB", help=what)
    parser.add_argument(
        "--allow-package",
        action="append",
        default=[],
        metavar="NAME",
        help="let the job name networks and losses of this Python package; may be given several times",
    )


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """A type for `add_argument`: an integer in a range."""

    def number(text: str) -> int:
        value = int(text)
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(f"expected {lowest} to {highest}, got {value}")
        return value

    number.__name__ = "whole number"  # argparse says "invalid whole number value"
    return number
