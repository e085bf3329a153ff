"""Labels as numbers: a class number for classification, the value itself for regression."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from vfedsec.config.job import Task
from vfedsec.data.table import Table
from vfedsec.protocol.interfaces import Floats

_BINARY_WORDS = {"0": 0, "0.0": 0, "false": 0, "no": 0, "1": 1, "1.0": 1, "true": 1, "yes": 1}


def encode_labels(table: Table, task: Task) -> Floats:
    """The labels of all rows (rows,).

    Raises `DataError` at the first that the task does not know.
    """
    if table.label is None:
        raise table.error("has no label, and the task needs one")
    if task.kind == "regression":
        return _values(table, table.label)
    if task.classes:
        return _classes(table, table.label, {name: i for i, name in enumerate(task.classes)})
    return _classes(table, [text.lower() for text in table.label], _BINARY_WORDS)


def _classes(table: Table, label: list[str], numbers: Mapping[str, int]) -> Floats:
    found = [numbers.get(text) for text in label]
    if None in found:
        raise table.label_error(f"is none of the task's classes: {', '.join(numbers)}", row=found.index(None))
    return np.array(found, dtype=np.float32)


def _values(table: Table, label: list[str]) -> Floats:
    largest = float(np.finfo(np.float32).max)
    values = [_number(text) for text in label]
    for row, value in enumerate(values):
        if not abs(value) <= largest:
            raise table.label_error("is not a finite number", row=row)
    return np.array(values, dtype=np.float32)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
