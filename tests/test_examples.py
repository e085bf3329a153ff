"""The examples, and what the README shows of files, run as they stand."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from vfedsec.config.load import job_from, load_party

ROOT = Path(__file__).parent.parent
TOML_BLOCK = re.compile(r"```toml\n(.*?)```", re.DOTALL)


def test_the_notebook_trains_through_dropouts_and_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    names = runpy.run_path(str(ROOT / "examples" / "notebook.py"))
    assert names["result"].metrics["auc"] > 0.85
    assert names["result"].tally.padded > 10
    assert len(names["predictions"]) == 3000
    assert "AUC" in capsys.readouterr().out


def test_the_files_that_the_readme_shows_are_sound(tmp_path: Path) -> None:
    job_text, party_text = TOML_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    job = job_from(tomllib.loads(job_text))
    (tmp_path / "bank.toml").write_text(party_text, encoding="utf-8")
    assert load_party(tmp_path / "bank.toml").name == job.active.party
    assert set(job.parties) == {job.active.party, *job.passive_parties}
