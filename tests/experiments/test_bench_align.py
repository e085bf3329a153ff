"""A small run of the alignment's benchmark."""

from __future__ import annotations

import pytest

from vfedsec.data import matching
from vfedsec.experiments import bench_align


@pytest.fixture(scope="module")
def figures() -> dict[str, object]:
    return bench_align.run(1000)


def test_a_bench_finds_the_right_rows_and_tells_its_figures(figures: dict[str, object]) -> None:
    assert figures["intersection_ok"] is True
    assert {"ids", "cores", "cpu_over_bare", "parallel_over_sequential", "peak_mb", "bare_s"} <= figures.keys()
    assert (figures["ids"], figures["laps"]) == (1000, 2)
    assert all(value > 0 for value in figures.values())  # type: ignore[operator]


def test_an_alignment_costs_about_what_the_library_costs(figures: dict[str, float]) -> None:
    assert 0.5 < figures["cpu_over_bare"] < 1.6  # the smaller the tables the more noise


def test_a_wrong_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = matching.places
    monkeypatch.setattr("vfedsec.data.alignment.places", lambda *lists: right(*lists)[::-1])
    assert bench_align.run(100)["intersection_ok"] is False
