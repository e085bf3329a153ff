"""What commands print and write: results to stdout, everything else to stderr, files checked before the work."""

from __future__ import annotations

import sys
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


def json_text(value: Any) -> str:
    """JSON that people can read too; a number that is none becomes null."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_json(value: Any) -> None:
    """To stdout, which holds nothing else then."""
    sys.stdout.write(json_text(value) + "\n")


def check_writable(path: Path | None) -> None:
    """Raises `ConfigError` unless the file can be written, so that no work is lost for it."""
    if path is None:
        return
    is_new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise ConfigError(f"expected a file that can be written, found: {error.strerror}", file=str(path)) from None
    if is_new:
        path.unlink()
