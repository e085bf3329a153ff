"""From arguments to an exit code: 0 all is well, 1 refused or failed, 2 the command line is wrong, 130 interrupted."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from vfedsec import __version__
from vfedsec.cli import bench, check, demo, keygen, paper, simulate
from vfedsec.errors import VFedSecError

_COMMANDS = (demo, simulate, check, bench, keygen, paper)

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` is the program's own where it is left out."""
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except VFedSecError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _leave_pipe()
        return 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        _leave_pipe()
        return 1


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole program."""
    parser = argparse.ArgumentParser(
        prog="vfedsec", description="Secure vertical federated learning that survives unreliable connections."
    )
    parser.add_argument("--version", action="version", version=f"vfedsec {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def _leave_pipe() -> None:
    # Nobody reads any more; without this, Python would complain once again when it flushes at its end.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
