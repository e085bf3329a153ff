"""Predictions as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from vfedsec.config.job import Task
from vfedsec.errors import DataError
from vfedsec.experiments.predictions import write_predictions


def written(path: Path, task: Task, *outputs: list[float]) -> list[list[str]]:
    write_predictions(path, task, {f"p,{n}": np.array(row, np.float32) for n, row in enumerate(outputs)})
    with path.open(newline="") as stream:
        return list(csv.reader(stream))


def test_a_binary_task_has_one_probability_a_row(tmp_path: Path) -> None:
    lines = written(tmp_path / "p.csv", Task(), [0.25], [1 / 3])
    assert lines == [["id", "probability"], ["p,0", "0.25"], ["p,1", "0.3333333"]]


def test_a_multiclass_task_has_one_for_each_class(tmp_path: Path) -> None:
    task = Task(kind="multiclass", classes=("red", "green"))
    lines = written(tmp_path / "p.csv", task, [0.25, 0.75])
    assert lines == [["id", "probability of red", "probability of green"], ["p,0", "0.25", "0.75"]]


def test_a_regression_has_a_value(tmp_path: Path) -> None:
    assert written(tmp_path / "p.csv", Task(kind="regression"), [-2.5]) == [["id", "value"], ["p,0", "-2.5"]]


def test_the_digits_give_the_same_float32_back(tmp_path: Path) -> None:
    value = np.float32(0.1) / np.float32(3)
    (_, (_, text)) = written(tmp_path / "p.csv", Task(), [float(value)])
    assert float(text) == pytest.approx(float(value), rel=1e-6)


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="to be written, found: Is a directory"):
        write_predictions(tmp_path, Task(), {})
