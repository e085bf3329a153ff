"""The command line: `vfedsec demo`, `simulate`, `check`, `bench`, `keygen`, `paper`."""

from vfedsec.cli.entry import main

__all__ = ["main"]
