"""The job and party files of a partition, such as people would write them. No data set is needed to make them."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from vfedsec.data.datasets.catalogue import KnownTable
from vfedsec.experiments.partitions.networks import (
    bottom,
    bottom_in_words,
    embedding_width,
    group_width,
    input_width,
    top,
    top_in_words,
    used,
)
from vfedsec.experiments.partitions.plan import ACTIVE, SEED, GroupPlan, Holding, JobPlan, Partition

ID = "id"
"""The column, or the array, with the ids."""
_IMAGE_LABEL = "label"
_LINE = 110


def files(partition: Partition) -> dict[str, str]:
    """Every job and party file by its name."""
    jobs = {f"{job.file}.toml": _job(partition, job) for job in partition.jobs}
    return jobs | {f"{name}.toml": _party(partition, name, holding) for name, holding in partition.holdings.items()}


def data_file(partition: Partition, party: str) -> str:
    """Where a party's table is, relative to its file."""
    return f"data/{party}.{'csv' if isinstance(partition.known, KnownTable) else 'npz'}"


def label(partition: Partition) -> str:
    """The active party's column with the classes."""
    return partition.known.label if isinstance(partition.known, KnownTable) else _IMAGE_LABEL


def _job(partition: Partition, job: JobPlan) -> str:
    sections = [
        _head(partition, job),
        _active(partition, job),
        *(_group(partition, job, group) for group in partition.groups),
        _task(partition),
        _fusion(partition, job),
        _top(partition, job),
        _training(partition, job),
        _split(partition),
        _purpose(job),
        "\n".join(["[parties]", *(f'{name} = "{name}.toml"' for name in partition.holdings)]),
    ]
    return "\n\n".join(sections) + "\n"


def _head(partition: Partition, job: JobPlan) -> str:
    tables = "the drop-out figures and tables" if job.purpose == "dropout" else "the overhead tables"
    about = f"{partition.known.name}, partitioned as for {tables} of the paper. Made by `vfedsec paper partitions`."
    if job.without:
        about += f" The job leaves {job.without} alone, which is known only after the call that it is to predict."
    return f'{_comment(about)}\n\nname = "{partition.name}-{job.file}"\nseed = {SEED}'


def _active(partition: Partition, job: JobPlan) -> str:
    width = embedding_width(partition, job)
    lines = ["[active]", f'party = "{ACTIVE}"', *_model(partition, job, partition.active, width, is_active=True)]
    return "\n".join(lines)


def _group(partition: Partition, job: JobPlan, group: GroupPlan) -> str:
    width = group_width(partition, job)
    lines = [
        "[[groups]]",
        f'name = "{group.name}"',
        f"parties = {_texts(group.parties)}",
        f"width = {width}",
        *_model(partition, job, group.holding, width, is_active=False),
    ]
    return "\n".join(lines)


def _model(partition: Partition, job: JobPlan, holding: Holding, width: int, *, is_active: bool) -> Iterator[str]:
    yield f"columns = {_texts(used(job, holding))}"
    yield f"# {bottom_in_words(job, input_width(partition, job, holding), width, is_active=is_active)}"
    yield f"model = {bottom(job, holding, is_active=is_active)}"


def _task(partition: Partition) -> str:
    classes = partition.known.classes
    kind = "binary" if len(classes) == 2 else "multiclass"
    return f'[task]\nkind = "{kind}"\nclasses = {_texts(classes)}'


def _fusion(partition: Partition, job: JobPlan) -> str:
    if job.purpose != "dropout":
        parts = "as one map of all columns would be"
        if job.network == "linear":
            holdings = [partition.active, *(group.holding for group in partition.groups)]
            total = sum(input_width(partition, job, holding) for holding in holdings)
            parts = f"so together they are Linear({total}, {embedding_width(partition, job)})"
        else:
            parts = f"as the paper's widths have it: {embedding_width(partition, job)} whatever the number of slices"
        return f'{_comment(f"The parts of all parties add up, {parts}.")}\n[fusion]\nkind = "sum"'
    about = (
        "Every group has columns of its own, so that one can be missing: an equal share of the width that the paper's "
        "embedding has as a whole."
    )
    return f'{_comment(about)}\n[fusion]\nkind = "concat"'


def _top(partition: Partition, job: JobPlan) -> str:
    normalises = job.purpose == "dropout"
    about = (
        "The embedding is normalised before zeros stand in for what is missing."
        if normalises
        else "The appendix names no batch norm of the embedding."
    )
    lines = [
        "[top]",
        f"# {about}",
        f"batch_norm = {str(normalises).lower()}",
        f"# {top_in_words(partition, job)}",
        f"model = {top(job)}",
    ]
    return "\n".join(lines)


def _training(partition: Partition, job: JobPlan) -> str:
    length, reason, optimizer = ["rounds = 5", "evaluate_every = 0"], "The paper names no optimizer.", "sgd"
    if job.purpose != "overhead":
        length, optimizer = ["epochs = 10"], "adam"
        if job.purpose == "dropout" and isinstance(partition.known, KnownTable):
            length = ["# The paper tells the AUC after 30 rounds and after 50.", "rounds = 50", "evaluate_every = 10"]
            reason += " Plain SGD of this step size learns next to nothing in 50 rounds."
    steps = ["batch_size = 256", f"# {reason}", f'optimizer = "{optimizer}"', "learning_rate = 0.01"]
    return "\n".join(["[training]", *length, *steps])


def _split(partition: Partition) -> str:
    fraction = partition.known.test_fraction
    if fraction is None:
        return "# No test part is published.\n[split]\ntest = 0.2"
    about = "As many rows are held out as the data set's own test part has, but others: drawn at random from all."
    return f"{_comment(about)}\n[split]\ntest = {fraction}"


def _purpose(job: JobPlan) -> str:
    if job.purpose == "overhead":
        return "# Keys live as long as in the paper.\n[security]\nrekey_every = 5"
    if job.purpose == "training":
        return '# A sum cannot pad: a round that loses somebody is dropped.\n[dropout]\npolicy = "discard"'
    policy = '# The baseline is "discard".\n[dropout]\npolicy = "pad"'
    about = (
        "Nobody drops out as it stands. In the paper a round loses parties with a probability of 0.3 or 0.4, and then "
        "a tenth of them."
    )
    return f"{policy}\n\n{_comment(about)}\n[simulation]\ndrop_probability = 0.0\ndrop_proportion = 0.1"


def _party(partition: Partition, name: str, holding: Holding) -> str:
    data = [f'source = "{data_file(partition, name)}"', f'id = "{ID}"']
    data += [f'label = "{label(partition)}"'] if name == ACTIVE else []
    lines = [f"# This file stays with {name}.", "", f'name = "{name}"', "", "[data]", *data]
    kinds = _kinds(partition, holding)
    if kinds:
        lines += ["", "# Two words of each, or numbers, that are to be categories.", "[data.kinds]"]
    return "\n".join([*lines, *(f'{column} = "categorical"' for column in kinds)]) + "\n"


def _kinds(partition: Partition, holding: Holding) -> list[str]:
    known = partition.known
    if not isinstance(known, KnownTable):
        return []
    return [column for column in holding.columns if known.columns[column].infers_otherwise]


def _texts(items: Sequence[str]) -> str:
    """A list in TOML, whose texts are JSON's as long as they are plain."""
    quoted = [json.dumps(item) for item in items]
    line = f"[{', '.join(quoted)}]"
    if len(line) <= _LINE - len("columns = "):
        return line
    return "\n".join(["[", *_filled(quoted), "]"])


def _filled(quoted: Sequence[str]) -> Iterator[str]:
    line = "   "
    for item in quoted:
        if len(line) + len(item) + 2 > _LINE:
            yield line
            line = "   "
        line += f" {item},"
    yield line


def _comment(text: str) -> str:
    return textwrap.fill(text, _LINE, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
