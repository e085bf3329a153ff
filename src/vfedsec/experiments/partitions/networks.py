"""The paper's networks, as far as jobs can name them.

Its bottom models end where the fused embedding begins: Linear(_, 64) for tables, 600 numbers for the CNN, 128 for the
MLP. 600 and 128 are what the active party's first layer takes, whatever the number of slices, so the parts of the
parties must add up there as those of the tables do: `sum`, every part as wide as the whole. A group of which parties
may be missing needs columns of its own, though: with `concat` the groups share these widths equally.
"""

from __future__ import annotations

import itertools

from vfedsec.data.datasets.catalogue import KnownTable
from vfedsec.experiments.partitions.plan import Holding, JobPlan, Network, Partition

_EMBEDDING = {"linear": 64, "cnn": 600, "mlp": 128}
_TOP: dict[Network, list[int]] = {"linear": [], "cnn": [120], "mlp": [256, 128, 64]}
_HIDDEN = 32
"""Of an MLP below: Linear(_, 32), Linear(32, _)."""


def group_width(partition: Partition, job: JobPlan) -> int:
    """How many columns of the embedding a group fills: all that are summed, or an equal share, rounded."""
    whole = _EMBEDDING[job.network]
    return round(whole / len(partition.groups)) if job.purpose == "dropout" else whole


def embedding_width(partition: Partition, job: JobPlan) -> int:
    """How many columns the joint embedding has."""
    width = group_width(partition, job)
    return width * len(partition.groups) if job.purpose == "dropout" else width


def input_width(partition: Partition, job: JobPlan, holding: Holding) -> int:
    """How many features a party's columns are encoded to."""
    if isinstance(partition.known, KnownTable):
        return partition.known.width(used(job, holding))
    return len(holding.lines) * holding.across


def used(job: JobPlan, holding: Holding) -> tuple[str, ...]:
    """The columns of a party that a job names."""
    return tuple(name for name in holding.columns if name != job.without)


def bottom(job: JobPlan, holding: Holding, *, is_active: bool) -> str:
    """A party's model in TOML."""
    if job.network == "cnn":
        return f'{{ name = "cnn", options = {{ shape = [1, {len(holding.lines)}, {holding.across}] }} }}'
    if job.network == "mlp":
        return f'{{ name = "mlp", options = {{ hidden = [{_HIDDEN}] }} }}'
    # One constant is enough for a sum, so the passive parties' maps have none.
    return '{ name = "linear" }' if is_active else '{ name = "linear", options = { bias = false } }'


def bottom_in_words(job: JobPlan, inputs: int, outputs: int, *, is_active: bool) -> str:
    """A party's model as the paper writes it."""
    if job.network == "cnn":
        return f"Conv3x3 to 32 channels, Conv1x1 to 64, each with batch norm, ReLU and pooling; Linear(_, {outputs})"
    if job.network == "mlp":
        return f"Linear({inputs}, {_HIDDEN}), Linear({_HIDDEN}, {outputs})"
    return f"{'' if is_active else 'unbiased '}Linear({inputs}, {outputs})"


def top(job: JobPlan) -> str:
    """The aggregator's model in TOML."""
    hidden = _TOP[job.network]
    return f'{{ name = "mlp", options = {{ hidden = {hidden} }} }}' if hidden else '{ name = "linear" }'


def top_in_words(partition: Partition, job: JobPlan) -> str:
    """The aggregator's model as the paper writes it."""
    classes = len(partition.known.classes)
    outputs = 1 if classes == 2 else classes
    widths = [embedding_width(partition, job), *_TOP[job.network], outputs]
    return ", ".join(f"Linear({before}, {after})" for before, after in itertools.pairwise(widths))
