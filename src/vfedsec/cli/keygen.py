"""`vfedsec keygen`: a party's long-lived identity."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.cli.options import new_command
from vfedsec.errors import ConfigError

if TYPE_CHECKING:
    from vfedsec.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Declare the command."""
    parser = new_command(
        commands,
        "keygen",
        run,
        summary="make a party's long-lived identity",
        about="Write a new Ed25519 private key to a PEM file that only its owner can read, and print the public half, "
        "which stands in everybody's job under [identities].",
    )
    parser.add_argument("path", metavar="PATH", type=Path, help="the file to write; one that exists is refused")


def run(arguments: argparse.Namespace) -> int:
    """Carry it out."""
    from vfedsec.crypto.keys import Identity

    identity = Identity.from_seed(os.urandom(32))
    _write_secret(arguments.path, identity.pem())
    print(identity.public.text())
    return 0


def _write_secret(path: Path, content: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
    except FileExistsError:
        raise ConfigError("expected a new file, found one; keys are never overwritten", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"expected a file that can be written, found: {error.strerror}", file=str(path)) from None
