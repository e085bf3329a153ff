"""How good predictions are. A metric that the rows do not define is nan, and so is that of nans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vfedsec.config.job import TaskKind

Numbers = NDArray[Any]

_SMALLEST_PROBABILITY = float(np.finfo(np.float32).eps)
"""Outputs are float32: nearer to 0 or 1 they cannot be told from certainty."""


def auc(labels: Numbers, scores: Numbers) -> float:
    """The area under the ROC curve of scores (rows,), equal scores sharing their rank."""
    positive = labels == 1
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives or np.isnan(scores).any():
        return float("nan")
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    middle_ranks = np.cumsum(sizes) - (sizes - 1) / 2
    rank_sum = float(middle_ranks[group][positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def average_precision(labels: Numbers, scores: Numbers) -> float:
    """The precision at each distinct score, weighted by the recall gained there."""
    positive = labels == 1
    if not positive.any() or np.isnan(scores).any():
        return float("nan")
    distinct, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    hits = np.bincount(group, weights=positive, minlength=len(distinct))[::-1]
    precision = np.cumsum(hits) / np.cumsum(sizes[::-1])
    return float(precision @ hits / hits.sum())


def accuracy(labels: Numbers, predictions: Numbers) -> float:
    """The share of rows whose predicted class is the right one."""
    return float(np.mean(labels == predictions)) if len(labels) else float("nan")


def log_loss(labels: Numbers, probabilities: Numbers) -> float:
    """The mean negative log probability of the right class.

    Probabilities are those of the positive class (rows,) or of each class (rows, classes); they are
    kept away from 0 and 1 by what float32 can tell.
    """
    if not len(labels):
        return float("nan")
    numbers = probabilities.astype(np.float64)
    if numbers.ndim == 1:
        numbers = np.stack([1 - numbers, numbers], axis=1)
    right = numbers[np.arange(len(labels)), labels.astype(np.int64)]
    return float(-np.log(right.clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)).mean())


def rmse(labels: Numbers, values: Numbers) -> float:
    """The root of the mean squared error."""
    if not len(labels):
        return float("nan")
    return float(np.sqrt(np.mean(np.square(_difference(labels, values)))))


def r2(labels: Numbers, values: Numbers) -> float:
    """The share of the labels' variance that the values explain."""
    if not len(labels) or np.ptp(labels) == 0:
        return float("nan")
    mean = np.mean(labels, dtype=np.float64)
    variation = np.square(_difference(labels, mean)).sum()
    return float(1 - np.square(_difference(labels, values)).sum() / variation)


def macro_auc(labels: Numbers, probabilities: Numbers) -> float:
    """The mean area of one class against the rest, over classes that some but not all rows have."""
    if np.isnan(probabilities).any():
        return float("nan")
    areas = [auc(labels == c, probabilities[:, c]) for c in range(probabilities.shape[1])]
    known = [area for area in areas if not np.isnan(area)]
    return float(np.mean(known)) if known else float("nan")


def evaluate(task_kind: TaskKind, labels: Numbers, outputs: Numbers) -> dict[str, float]:
    """Every metric of a task, for outputs (rows, outputs) as the top model predicts them."""
    return _EVALUATIONS[task_kind](labels, outputs)


def main_metric(task_kind: TaskKind) -> tuple[str, bool]:
    """The metric to compare models by, and whether higher is better."""
    return _MAIN_METRICS[task_kind]


def _evaluate_binary(labels: Numbers, outputs: Numbers) -> dict[str, float]:
    scores = outputs.reshape(len(labels))
    return {
        "auc": auc(labels, scores),
        "average_precision": average_precision(labels, scores),
        "accuracy": accuracy(labels, scores >= 0.5),
        "log_loss": log_loss(labels, scores),
    }


def _evaluate_multiclass(labels: Numbers, outputs: Numbers) -> dict[str, float]:
    return {
        "accuracy": accuracy(labels, outputs.argmax(axis=1)),
        "log_loss": log_loss(labels, outputs),
        "macro_auc": macro_auc(labels, outputs),
    }


def _evaluate_regression(labels: Numbers, outputs: Numbers) -> dict[str, float]:
    values = outputs.reshape(len(labels))
    return {"rmse": rmse(labels, values), "r2": r2(labels, values)}


def _difference(left: Numbers, right: Numbers | np.floating[Any]) -> Numbers:
    return np.subtract(left, right, dtype=np.float64)


_EVALUATIONS: dict[TaskKind, Callable[[Numbers, Numbers], dict[str, float]]] = {
    "binary": _evaluate_binary,
    "multiclass": _evaluate_multiclass,
    "regression": _evaluate_regression,
}

_MAIN_METRICS: dict[TaskKind, tuple[str, bool]] = {
    "binary": ("auc", True),
    "multiclass": ("accuracy", True),
    "regression": ("rmse", False),
}
