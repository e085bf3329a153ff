"""Predictions as a file that any spreadsheet reads: a line a row, by id."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from vfedsec.config.job import Task
from vfedsec.errors import DataError
from vfedsec.protocol.interfaces import Floats


def write_predictions(path: Path, task: Task, outputs: Mapping[str, Floats]) -> None:
    """Write `Simulation.predict`'s outputs as CSV. Raises `DataError` when the file cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["id", *_columns(task)])
            writer.writerows([one, *map(_digits, row.tolist())] for one, row in outputs.items())
    except OSError as error:
        raise DataError(f"expected {path} to be written, found: {error.strerror}") from None


def _columns(task: Task) -> list[str]:
    if task.kind == "multiclass":
        return [f"probability of {name}" for name in task.classes]
    return ["probability" if task.kind == "binary" else "value"]


def _digits(value: float) -> str:
    return f"{value:.7g}"  # what a float32 holds
