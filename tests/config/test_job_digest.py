"""The digest is a function of what was agreed, and of nothing else."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from vfedsec.config.digest import job_digest
from vfedsec.config.load import job_from, parse_job

PLAIN = """
name = "demo"
[active]
party = "bank"
columns = ["age"]
[[groups]]
name = "telco"
parties = ["north"]
columns = ["plan"]
[top.model]
name = "mlp"
options = { hidden = [32], bias = true }
"""
SAME = """
# Keys in another order, with comments and some defaults written out.
seed = 0
name = "demo"
[top]
model = { options = { bias = true, hidden = [32] }, name = "mlp" }
[security]
mode = "secure"
clip = 4
[[groups]]
columns = ["plan"]  # of the telco
width = 32
parties = ["north"]
name = "telco"
[active]
columns = ["age"]
party = "bank"
"""
CHANGES: dict[str, Any] = {
    "name": "other",
    "seed": 1,
    "active": {"party": "bank", "columns": ["age", "income"]},
    "groups": [{"name": "telco", "parties": ["south"], "columns": ["plan"]}],
    "task": {"classes": ["no", "yes"]},
    "fusion": {"kind": "sum"},
    "top": {"model": {"name": "mlp", "options": {"hidden": [33], "bias": True}}},
    "training": {"epochs": 11},
    "split": {"test": 0.25},
    "alignment": {"join": "left"},
    "encoding": {"category_cap": 5},
    "security": {"word_bits": 16},
    "dropout": {"policy": "discard"},
    "simulation": {"drop_probability": 0.3},
    "identities": {
        "bank": "A" * 43 + "=",
        "north": "B" * 42 + "A=",
        "aggregator": "C" * 42 + "A=",
    },
}


def test_comments_order_and_written_defaults_do_not_change_the_digest() -> None:
    assert job_digest(parse_job(PLAIN)) == job_digest(parse_job(SAME))


def test_everything_written_out_is_the_same_job() -> None:
    job = parse_job(PLAIN)
    assert job_digest(job_from(msgspec.to_builtins(job))) == job_digest(job)


def test_paths_of_party_files_do_not_change_the_digest() -> None:
    paths = '[parties]\nbank = "elsewhere/bank.toml"\n'
    assert job_digest(parse_job(PLAIN + paths)) == job_digest(parse_job(PLAIN))


@pytest.mark.parametrize("key", CHANGES)
def test_any_change_of_the_agreement_changes_the_digest(key: str) -> None:
    mapping = copy.deepcopy(msgspec.to_builtins(parse_job(PLAIN)))
    assert job_digest(job_from(mapping | {key: CHANGES[key]})) != job_digest(parse_job(PLAIN))


def test_every_table_of_a_job_is_tried_above() -> None:
    fields = {field.name for field in msgspec.structs.fields(parse_job(PLAIN).__class__)}
    assert fields == {*CHANGES, "parties"}


def test_a_digest_has_32_bytes() -> None:
    assert len(job_digest(parse_job(PLAIN))) == 32
