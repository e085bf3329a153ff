"""Which weights of classes a job may ask for."""

from __future__ import annotations

from collections.abc import Iterator

from vfedsec.config.job import Job
from vfedsec.config.refusals import Refusal, shown

_KEY = "task.class_weights"


def class_weights_that_weigh_nothing(job: Job) -> Iterator[Refusal]:
    """Weights where there are no classes, where another loss weighs for itself, or not one for each class."""
    weights = job.task.class_weights
    if weights is None:
        return
    found = shown(weights)
    if job.task.kind == "regression":
        yield Refusal(_KEY, 'nothing with task.kind = "regression"', found, "a regression has no classes")
    if job.task.loss:
        yield Refusal(_KEY, "nothing beside task.loss", found, "a loss of your own weighs its rows for itself")
    if not isinstance(weights, str):
        yield from _list_of_weights(weights, job.task.class_count)


def _list_of_weights(weights: tuple[float, ...], classes: int) -> Iterator[Refusal]:
    if len(weights) != classes:
        yield Refusal(_KEY, f"a number for each of the {classes} classes", f"{len(weights)} of them")
    for index, weight in enumerate(weights):
        # Beyond, products with a gradient would leave what float32 holds.
        if weight and not 1e-6 <= weight <= 1e6:
            yield Refusal(f"{_KEY}[{index}]", "0, or a number from 1e-6 to 1e6", shown(weight))
    if not any(weights):
        yield Refusal(_KEY, "at least one number above 0", "only zeros", "no row would count")
