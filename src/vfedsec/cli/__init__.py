"""The command line: `vfedsec demo`, `simulate`, `check`, `bench`, `keygen`."""

from vfedsec.cli.entry import main

__all__ = ["main"]
