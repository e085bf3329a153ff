"""Every party's encoder, for somebody who has all the tables: a simulation's owner, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from vfedsec.config.job import Job
from vfedsec.data.encoding import Encoder
from vfedsec.data.summaries import merge, summarise
from vfedsec.data.table import Table


def encoders(job: Job, tables: Mapping[str, Table]) -> dict[str, Encoder]:
    """By party, what the preparation makes of these tables.

    Raises `DataError` at a cell that is not of its column's kind, and when the kinds of a group do not go together.
    """
    active, cap = job.active.party, job.encoding.category_cap
    made = {active: Encoder(summarise(tables[active], job.active.columns), category_cap=cap)}
    for group in job.groups:
        pooled = merge({party: summarise(tables[party], group.columns) for party in group.parties})
        joint = Encoder(pooled, category_cap=cap)
        made |= dict.fromkeys(group.parties, joint)
    return made
