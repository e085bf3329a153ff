"""What commands print and write: results to stdout, everything else to stderr, files checked before the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vfedsec.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console


def progress_console() -> Console:
    """For what goes by."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def result_console() -> Console:
    """For what stays."""
    from rich.console import Console

    return Console(highlight=False)


def warn(message: str) -> None:
    """To stderr: something that a person should know and no reason to stop."""
    progress_console().print(f"warning: {message}", style="yellow", markup=False, soft_wrap=True)


def json_text(value: Any) -> str:
    """JSON that people can read too; a number that is none becomes null."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_json(value: Any) -> None:
    """To stdout, which holds nothing else then."""
    sys.stdout.write(json_text(value) + "\n")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path]) -> None:
    """Raises `ConfigError` unless every output, by its option, can be written and overwrites no input and no other."""
    taken = {os.path.realpath(path): "is a file that this command reads" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        if (reason := taken.get(os.path.realpath(path))) is not None:
            raise ConfigError(f"expected another file for {option}: this {reason}", file=str(path))
        check_writable(path)
        taken[os.path.realpath(path)] = f"is what {option} writes"


def check_writable(path: Path) -> None:
    """Raises `ConfigError` unless the file can be written, so that no work is lost for it."""
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise ConfigError(f"expected a file that can be written, found: {error.strerror}", file=str(path)) from None
    if is_new:
        path.unlink()
