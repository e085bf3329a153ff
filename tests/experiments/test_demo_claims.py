"""What the demo is there to show, shown on less data and as many rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from vfedsec.data.demo import write_demo
from vfedsec.engines.simulation import Simulation
from vfedsec.experiments.comparison import Comparison, compare


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder: Path = tmp_path_factory.mktemp("demo")
    return compare(Simulation.from_files(write_demo(folder, customers=8_000, epochs=20)))


def auc(comparison: Comparison, name: str) -> float:
    return getattr(comparison, name).metrics["auc"]  # type: ignore[no-any-return]


def test_padding_comes_close_to_all_columns_in_one_place(comparison: Comparison) -> None:
    assert auc(comparison, "pad") >= 0.98 * auc(comparison, "pooled")


def test_padding_beats_discarding_at_equal_rounds(comparison: Comparison) -> None:
    assert auc(comparison, "pad") > auc(comparison, "discard")


def test_the_federation_beats_the_bank_alone(comparison: Comparison) -> None:
    assert auc(comparison, "pad") > auc(comparison, "alone") + 0.1
