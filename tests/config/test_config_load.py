"""Files in, structs or a `ConfigError` out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfedsec.config.digest import job_digest
from vfedsec.config.job import Active, Group, Job, ModelSpec, Security, Task, Training
from vfedsec.config.load import (
    MAX_FILE_BYTES,
    job_from,
    load_job,
    load_party,
    parse_job,
    parse_party,
)
from vfedsec.config.party import DataSource, PartyFile
from vfedsec.config.refusals import misfits
from vfedsec.errors import ConfigError

JOB = """
name = "demo"

[active]
party = "bank"
columns = ["age"]

[[groups]]
name = "telco"
parties = ["north", "south"]
columns = ["plan"]
width = 8
"""

PARTY = """
name = "bank"

[data]
source = "bank.csv"
id = "customer_id"
label = "defaulted"
"""

SEED = "vienna-marble-7431"


def test_a_job_file_becomes_a_job(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    job = load_job(tmp_path / "job.toml")
    assert (job.name, job.groups[0].width) == ("demo", 8)
    assert job.passive_parties == ("north", "south")


def test_a_party_file_becomes_a_party(tmp_path: Path) -> None:
    (tmp_path / "bank.toml").write_text(PARTY)
    party = load_party(tmp_path / "bank.toml")
    assert (party.name, party.data.label) == ("bank", "defaulted")


def test_a_job_from_dictionaries_is_the_job_of_the_file() -> None:
    mapping = {
        "name": "demo",
        "active": {"party": "bank", "columns": ("age",)},
        "groups": [{"name": "telco", "parties": ["north", "south"], "columns": ["plan"], "width": 8}],
    }
    assert job_from(mapping) == parse_job(JOB)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB, encoding="utf-8-sig")
    assert load_job(tmp_path / "job.toml") == parse_job(JOB)


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"a key of the top level .*, found the number 7"):
        job_from({7: "x"})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match=r"\[parties\.7\]: expected a text for a key"):
        job_from(msgspec.to_builtins(parse_job(JOB)) | {"parties": {7: "x"}})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"job\.toml: expected a readable file, found: No such"):
        load_job(tmp_path / "job.toml")


def test_a_folder_is_not_a_job(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        load_job(tmp_path)


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="null byte"):
        load_party("bank\0.toml")


def test_a_file_of_exactly_the_largest_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB + "#" * (MAX_FILE_BYTES - len(JOB)))
    assert load_job(tmp_path / "job.toml") == parse_job(JOB)


def test_one_byte_more_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB + "#" * (MAX_FILE_BYTES - len(JOB) + 1))
    with pytest.raises(ConfigError, match=r"job\.toml: expected at most 1048576 bytes, found more"):
        load_job(tmp_path / "job.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(ConfigError, match=r"job\.toml: expected UTF-8 text, found byte 8"):
        load_job(tmp_path / "job.toml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('name = "demo"\nseed 3\n', "line 2, column 6"),
        ("[active\n", "line 1, column 8"),
        ("seed = ", "line 1, column 8"),
        ("seed = 1\nseed = 2", "line 2, column 9"),
    ],
)
def test_a_toml_mistake_is_placed(text: str, place: str) -> None:
    with pytest.raises(ConfigError, match=rf"job\.toml: expected TOML, found .*{place}"):
        parse_job(text)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "9" * 5_000])
def test_what_breaks_the_toml_reader_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"job\.toml: expected TOML"):
        parse_job(text)


def test_a_refused_party_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bank.toml").write_text(PARTY.replace("id =", "idd ="))
    with pytest.raises(ConfigError, match=r'bank\.toml \[data\.idd\]: .* did you mean "id"\?'):
        load_party(tmp_path / "bank.toml")


@pytest.mark.parametrize(("text", "key"), [(f'sede = "s"\n{PARTY}', "sede"), (f'{PARTY}mising = ["-"]', "data.mising")])
def test_a_key_that_a_party_file_does_not_know_is_refused(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_party(text)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"bank"', '"my bank"', r'\[name\]: expected a name .* found the text "my bank"'),
        (
            '"bank.csv"',
            '""',
            r"\[data\.source\]: expected a file name, or data.query, or data.arrays, found none of them",
        ),
        (
            "[data]",
            '[data]\nquery = "SELECT 1"',
            r"\[data\.query\]: expected one of .* found data.source and data.query",
        ),
        ("[data]", "[data]\narrays = { x = 'y' }", r"\[data\.arrays\]: .* found data.source and data.arrays"),
        (
            "[data]",
            "[data]\nattach = { x = 'y' }",
            r"\[data\.attach\]: expected databases for data.query, found no such",
        ),
        (
            "source =",
            "table = 't'\nquery =",
            r"\[data\.table\]: expected a table of the database data.source, found no",
        ),
        ('"customer_id"', '""', r"\[data\.id\]: expected the name of a column, found an empty"),
        ('"defaulted"', '"customer_id"', r"\[data\.label\]: expected a column other than data\.id"),
        ("[data]", "[data.kinds]\nage = 'number'\n[data]", r"\[data\.kinds\.age\]: expected one"),
    ],
)
def test_a_broken_party_file_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_party(PARTY.replace(old, new))


@pytest.mark.parametrize("value", [f'["{SEED}"]', "731946582", "true", f'{{ a = "{SEED}" }}'])
def test_no_message_shows_the_seed_of_a_party(value: str) -> None:
    with pytest.raises(ConfigError, match=r"\[seed\]: expected a text, found ") as caught:
        parse_party(f"seed = {value}\n{PARTY}")
    assert SEED not in str(caught.value)
    assert "731946582" not in str(caught.value)


def test_no_repr_shows_the_seed_of_a_party() -> None:
    party = parse_party(f'seed = "{SEED}"\n{PARTY}')
    assert party.seed == SEED
    assert SEED not in repr(party) + repr(party.__rich_repr__())
    assert "bank.csv" in repr(party)


def test_a_party_remembers_beside_its_file_unless_it_says_where() -> None:
    assert parse_party(PARTY).remember == ".vfedsec"
    assert parse_party(f'remember = ""\n{PARTY}').remember == ""


def test_a_folder_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[remember\]: expected a folder or an empty text"):
        parse_party(f'remember = "a\\u0000b"\n{PARTY}')


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[security\.clip\]"):
        parse_job(f"{JOB}\n[security]\nclip = 0x{'f' * 400}")


_STRUCTS = (Job, Active, Group, ModelSpec, Task, Training, Security, PartyFile, DataSource)
_KEYS = st.sampled_from(sorted({field.name for struct in _STRUCTS for field in msgspec.structs.fields(struct)}))
_VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.none(), st.dates()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_BROKEN = st.dictionaries(_KEYS, _VALUES, max_size=6)


def _converts(value: Any, struct: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(value, struct, strict=True)
    except msgspec.ValidationError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(_BROKEN, st.sampled_from([Job, PartyFile]))
def test_a_misfit_is_told_exactly_where_msgspec_refuses(mapping: dict[str, Any], struct: type[msgspec.Struct]) -> None:
    assert (not list(misfits(mapping, struct))) == _converts(mapping, struct)


@settings(max_examples=150, deadline=None)
@given(st.lists(_VALUES | st.floats(), max_size=3) | _VALUES | st.just("balanced"))
def test_a_value_of_two_types_is_told_exactly_where_msgspec_refuses(value: Any) -> None:
    task = {"class_weights": value}
    found = list(misfits(task, Task))
    assert (not found) == _converts(task, Task)
    assert all(one.key.startswith("class_weights[") == isinstance(value, list) for one in found)


@settings(max_examples=150, deadline=None)
@given(_BROKEN)
def test_whatever_a_mapping_holds_it_is_a_job_with_a_digest_or_an_error(
    changes: dict[str, Any],
) -> None:
    mapping = msgspec.to_builtins(parse_job(JOB)) | changes
    try:
        assert len(job_digest(job_from(mapping))) == 32
    except ConfigError as error:
        assert error.key or "at most" in str(error)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_whatever_a_text_holds_it_is_refused_as_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_job(text)


@pytest.mark.parametrize(
    "data",
    [
        'source = "postgresql://me:s3cret@host/db"\ntable = "t"',
        "query = \"SELECT * FROM read_csv('s3cret')\"",
        'query = "SELECT 1"\nattach = { a = "postgresql://me:s3cret@host/db" }',
    ],
)
def test_no_password_of_a_source_is_shown(data: str) -> None:
    party = parse_party(f'name = "bank"\n[data]\nid = "id"\n{data}\n')
    assert "s3cret" not in repr(party) and "id='id'" in repr(party)
