"""The examples run as they stand."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_notebook_trains_through_dropouts_and_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    names = runpy.run_path(str(EXAMPLES / "notebook.py"))
    assert names["result"].metrics["auc"] > 0.85
    assert names["result"].tally.padded > 10
    assert len(names["predictions"]) == 3000
    assert "AUC" in capsys.readouterr().out
