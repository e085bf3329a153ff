"""Curves as pictures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vfedsec.errors import ConfigError
from vfedsec.experiments import plots
from vfedsec.experiments.history import HistoryRecorder, Point
from vfedsec.experiments.plots import Curve, can_plot, draw_curves
from vfedsec.trace import Evaluated, RoundEnded

POINTS = [Point(rounds, rounds, "validation", {"auc": 0.5 + rounds / 100}) for rounds in (10, 20, 30)]


def draw(path: Path, *curves: Curve) -> None:
    draw_curves(path, curves, "auc", "AUC", "A title")


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "curves.png", Curve("one", POINTS), Curve("none", []))
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_more_curves_than_colours_can_be_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "curves.png", *(Curve(str(number), POINTS) for number in range(6)))
    assert (tmp_path / "curves.png").exists()


def test_points_without_a_number_are_left_out(tmp_path: Path) -> None:
    draw(tmp_path / "curves.png", Curve("one", [*POINTS, Point(40, 40, "test", {"auc": float("nan")})]))
    assert (tmp_path / "curves.png").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/curves.png", "expected a picture that can be written, found: No such file"),
        ("curves.nonsense", r"expected a name that ends in one of .*png.*, found \.nonsense"),
        ("curves", "found none"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draw(tmp_path / name, Curve("one", POINTS))


def test_of_two_evaluations_after_one_round_the_last_is_drawn() -> None:
    drawn = []

    class Axes:
        def plot(self, rounds: list[int], values: list[float], *args: object, **kwargs: object) -> None:
            drawn.append((rounds, values, kwargs["label"]))

    again = [*POINTS, Point(30, 30, "test", {"auc": 0.9})]
    plots._draw(Axes(), Curve("one", again), "auc", ("#000000", "-", "o"))  # type: ignore[arg-type]
    assert drawn == [([10, 20, 30], [0.6, 0.7, 0.9], "one (0.900)")]


def test_without_matplotlib_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not can_plot()
    with pytest.raises(ConfigError, match="pip install matplotlib"):
        draw(tmp_path / "curves.png", Curve("one", POINTS))


def test_a_history_counts_the_rounds_that_were_dropped_too() -> None:
    recorder = HistoryRecorder()
    recorder(RoundEnded(1, "train", 0, "trained", 0.7, 1))
    recorder(RoundEnded(2, "train", 0, "dropped", None, 1))
    recorder(RoundEnded(3, "validation", 0, "evaluated", None, 1))
    recorder(Evaluated(3, 1, "validation", {"auc": 0.6}))
    assert recorder.points == [Point(2, 1, "validation", {"auc": 0.6})]
