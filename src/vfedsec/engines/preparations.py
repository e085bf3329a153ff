"""How each party of a simulation prepares: from its table, with what it aligns by and what it remembers by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vfedsec.config.job import Job
from vfedsec.data.curve import Curve
from vfedsec.data.preparation import ActivePreparation, PassivePreparation
from vfedsec.data.prepared import BuildModel
from vfedsec.data.remembering import Memory
from vfedsec.data.table import Table
from vfedsec.protocol.interfaces import Preparation
from vfedsec.protocol.keyring import Entropy

MakePreparation = Callable[[str, bytes, BuildModel], Preparation]
"""Gives a party's preparation from its name, its secret seed and the way to build its model."""

Memories = Callable[[str], Memory | None]
"""Gives what a party remembers by, from its name."""


def from_tables(
    job: Job, tables: Mapping[str, Table], curve: Curve, memories: Memories, entropy: Entropy
) -> MakePreparation:
    """Of parties that have a table each."""

    def make(name: str, seed: bytes, build: BuildModel) -> Preparation:
        table, memory = tables[name], memories(name)
        if name == job.active.party:
            return ActivePreparation(job, table, seed, build, curve=curve, memory=memory)
        return PassivePreparation(job, name, table, seed, build, entropy, curve=curve, memory=memory)

    return make
