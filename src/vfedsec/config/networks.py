"""How a job names its networks and its loss. Whether the name exists is for whoever builds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from keyword import iskeyword

from vfedsec.config.job import Job, ModelSpec
from vfedsec.config.refusals import Refusal, join_key, shown

_PATH_EXPECTED = "an import path, package.module:Class"


def networks_that_cannot_be_named(job: Job) -> Iterator[Refusal]:
    """Names with a colon that are no import paths, and options that no digest could hold."""
    for key, model in models_of(job):
        yield from _model_name(f"{key}.name", model.name)
        yield from _options(f"{key}.options", model.options)
    if job.task.loss and not _is_import_path(job.task.loss):
        yield Refusal("task.loss", _PATH_EXPECTED, shown(job.task.loss))


def models_of(job: Job) -> Iterator[tuple[str, ModelSpec]]:
    """Every network of a job, with the key of the job file that names it."""
    yield "active.model", job.active.model
    for index, group in enumerate(job.groups):
        yield f"groups[{index}].model", group.model
    yield "top.model", job.top.model


def model_key(job: Job, party: str) -> str:
    """The key of the job file that names this party's bottom model."""
    if party == job.active.party:
        return "active.model"
    return next(f"groups[{index}].model" for index, group in enumerate(job.groups) if party in group.parties)


def bottom_of(job: Job, party: str) -> tuple[int, ModelSpec]:
    """The width of this party's embedding, and its bottom model."""
    if party == job.active.party:
        return job.embedding_width, job.active.model
    group = next(group for group in job.groups if party in group.parties)
    return group.width, group.model


def _model_name(key: str, name: str) -> Iterator[Refusal]:
    if not name:
        yield Refusal(key, "the name of a network", "an empty text")
    if ":" in name and not _is_import_path(name):
        yield Refusal(key, _PATH_EXPECTED, shown(name))


def _is_import_path(text: str) -> bool:
    module, colon, attribute = text.partition(":")
    names = [*module.split("."), attribute]
    return bool(colon) and all(name.isidentifier() and not iskeyword(name) for name in names)


def _options(key: str, value: object) -> Iterator[Refusal]:
    """Only what has one spelling in the job's digest: no dates, no nan, no infinity, no objects."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _options(join_key(key, name), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _options(f"{key}[{index}]", item)
    elif not _is_plain(value):
        yield Refusal(key, "a text, a finite number of 64 bits, true or false", shown(value))


def _is_plain(value: object) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str | bool) or (isinstance(value, float) and math.isfinite(value))
