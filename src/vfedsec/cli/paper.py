"""`vfedsec paper`: what the experiments of the paper need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfedsec.cli import paper_partitions

if TYPE_CHECKING:
    from vfedsec.cli.options import Commands


def add_parser(commands: Commands) -> None:
    """Declare the command, which has commands of its own."""
    parser = commands.add_parser(
        "paper", help="make the paper's experiments", description="What the experiments of the paper need."
    )
    own = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (paper_partitions,):
        command.add_parser(own)
