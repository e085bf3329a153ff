"""Every broken job is refused with the file, the key, what was expected and what was found."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from vfedsec.config.job import Job
from vfedsec.config.load import job_from
from vfedsec.errors import ConfigError

BANK_KEY, NORTH_KEY, SOUTH_KEY, SHOP_KEY, AGGREGATOR_KEY = (
    base64.b64encode(bytes([number]) * 32).decode() for number in range(5)
)
ALL_KEYS = {
    "bank": BANK_KEY,
    "north": NORTH_KEY,
    "south": SOUTH_KEY,
    "shop": SHOP_KEY,
    "aggregator": AGGREGATOR_KEY,
}
WITHOUT_SHOP = {name: key for name, key in ALL_KEYS.items() if name != "shop"}
GOOD: dict[str, Any] = {
    "name": "demo",
    "active": {"party": "bank", "columns": ["age", "income"]},
    "groups": [
        {"name": "telco", "parties": ["north", "south"], "columns": ["plan"], "width": 8},
        {"name": "retail", "parties": ["shop"], "columns": ["basket"], "width": 8},
    ],
}


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The good job with some keys set; a path is written as in the messages."""
    mapping = copy.deepcopy(GOOD)
    for path, value in changes:
        *tables, last = path.replace("[", ".").replace("]", "").split(".")
        table: Any = mapping
        for name in tables:
            table = table[int(name)] if name.isdigit() else table.setdefault(name, {})
        table[int(last) if last.isdigit() else last] = copy.deepcopy(value)
    return mapping


def refusal_of(mapping: dict[str, Any]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        job_from(mapping, "job.toml")
    return caught.value


Case = tuple[tuple[tuple[str, Any], ...], str, str, str]


def case(key: str, value: Any, expected: str, found: str, *also: tuple[str, Any]) -> Case:
    """One key set to a value, and the refusal at that very key."""
    return ((*also, (key, value)), key, expected, found)


def elsewhere(changes: tuple[tuple[str, Any], ...], key: str, expected: str, found: str) -> Case:
    """Changes that are refused at a key other than theirs."""
    return (changes, key, expected, found)


TYPES = [
    case("name", 3, "a text", "the number 3"),
    case("seed", "x", "a whole number", 'the text "x"'),
    case("seed", 1.0, "a whole number", "the number 1.0"),
    case("seed", True, "a whole number", "true"),
    case("active", 3, "a table", "the number 3"),
    case("active.columns", "age", "a list of texts", 'the text "age"'),
    case("active.columns", {"age": 1}, "a list of texts", "a table"),
    case("active.columns[1]", False, "a text", "false"),
    case("active.model", "mlp", "a table", 'the text "mlp"'),
    case("groups", {"name": "telco"}, "a list of tables", "a table: each is written [[groups]]"),
    case("groups[1].width", "8", "a whole number", 'the text "8"'),
    case("groups[1].width", True, "a whole number", "true"),
    case("groups[1].width", [8], "a whole number", "a list"),
    case("task.kind", "ranking", 'one of "binary", "multiclass", "regression"', 'text "ranking"'),
    case("security.mode", "none", 'one of "secure", "insecure-integers"', 'the text "none"'),
    case("security.word_bits", 24, "one of 16, 32", "the number 24"),
    case("security.word_bits", "16", "one of 16, 32", 'the text "16"'),
    case("security.clip", True, "a number", "true"),
    case("security.range_bits", "20", "a whole number", 'the text "20"'),
    case("top.batch_norm", 1, "true or false", "the number 1"),
    case("top.model.options", [1], "a table", "a list"),
    case("identities", [BANK_KEY], "a table", "a list"),
    case("identities.bank", 3, "a text", "the number 3"),
    case("parties.bank", ["bank.toml"], "a text", "a list"),
]
UNKNOWN = [
    case("actve", {}, "a key of the top level", '"actve": did you mean "active"?'),
    case("groups[1].widht", 8, "a key of [groups[1]]", '"widht": did you mean "width"?'),
    case("security.word_bit", 16, "a key of [security]", 'did you mean "word_bits"?'),
    case("top.model.colour", 1, "a key of [top.model] (name, options)", '"colour"'),
    case("dropout.zzz", 1, "a key of [dropout] (policy, deadline, patience)", '"zzz"'),
]
NAMES = [
    case("name", "../demo", "a name of 1 to 64", 'the text "../demo"'),
    case("name", ".", "a name of 1 to 64", 'the text "."'),
    case("active.party", "my bank", "a name of 1 to 64", 'the text "my bank"'),
    case("active.party", "", "a name of 1 to 64", 'the text ""'),
    case("active.party", "bank\n", "a name of 1 to 64", r'the text "bank\n"'),
    case("groups[0].parties[1]", "s" * 65, "a name of 1 to 64", "the text"),
    case("groups[0].parties[1]", "aggregator", "the name of a party", 'the text "aggregator"'),
    case("active.party", "aggregator", "the name of a party", 'the text "aggregator"'),
    case("groups[0].parties[1]", "north", "no other party", "groups[0].parties[0] has it"),
    case("groups[1].parties[0]", "north", "no other party", "groups[0].parties[0] has it"),
    case("groups[1].parties[0]", "bank", "no other party", "active.party has it"),
    case("groups[1].name", "telco", "no other group", "groups[0].name has it"),
    case("groups[1].name", "re/tail", "a name of 1 to 64", 'the text "re/tail"'),
]
GROUPS = [
    case("groups", [], "at least one [[groups]]", "none"),
    case("groups[1].parties", [], "at least one party", "an empty list"),
    case("groups[1].columns", [], "at least one column", "an empty list"),
    case("groups[1].width", 0, "from 1 to 65536", "the number 0"),
    case("groups[1].width", 2**16 + 1, "from 1 to 65536", "the number 65537"),
    case("groups[1].width", 9, "8, the width of groups[0]", "number 9", ("fusion.kind", "sum")),
    case("active.columns[1]", "age", "a column that is not in", "active.columns[0] has it"),
    case("active.columns[1]", "", "the name of a column", "an empty text"),
    elsewhere(
        (("groups[1].columns", ["basket", "visits", "basket"]),),
        "groups[1].columns[2]",
        "a column that is not in the list yet",
        'the text "basket": groups[1].columns[0] has it',
    ),
    case("active.columns", [], "at least one column", "insecure_label_only_active = true"),
]
TASKS = [
    case("task.classes", ["a", "b"], "at least 3 classes", "2 of them", ("task.kind", "multiclass")),
    case("task.classes", ["a"], "2 classes, or none for 0 and 1", "1 of them"),
    case("task.classes", ["a", "b", "c"], "2 classes, or none for 0 and 1", "3 of them"),
    case("task.classes", ["a", "b"], "no classes", "2 of them", ("task.kind", "regression")),
    elsewhere(
        (("task.classes", ["yes", "yes"]),),
        "task.classes[1]",
        "a class that is not in the list yet",
        "task.classes[0] has it",
    ),
    case("task.loss", "focal", "an import path, package.module:Class", 'the text "focal"'),
    case("task.loss", "losses:", "an import path", 'the text "losses:"'),
    case("top.model.name", "my net:Net", "an import path", 'the text "my net:Net"'),
    case("top.model.name", "", "the name of a network", "an empty text"),
    case("active.model.name", "nets:Net()", "an import path", 'the text "nets:Net()"'),
    case("groups[1].model.name", "a.class.b:Net", "an import path", "the text"),
    case("top.model.options.rate", float("inf"), "a finite number", "the number inf"),
    case("top.model.options.size", 2**63, "64 bits", "the number 9223372036854775808"),
    elsewhere(
        (("top.model.options", {"sizes": [1, {"x": None}]}),),
        "top.model.options.sizes[1].x",
        "a text, a finite number",
        "NoneType",
    ),
]
WEIGHTS = "task.class_weights"
CLASS_WEIGHTS = [
    case(WEIGHTS, "balance", '"balanced" or a list of numbers', 'the text "balance"'),
    case(WEIGHTS, 2.0, '"balanced" or a list of numbers', "the number 2.0"),
    case(WEIGHTS, {"yes": 2.0}, '"balanced" or a list of numbers', "a table"),
    elsewhere(((WEIGHTS, [1, "x"]),), f"{WEIGHTS}[1]", "a number", 'the text "x"'),
    elsewhere(((WEIGHTS, [[1], 2]),), f"{WEIGHTS}[0]", "a number", "a list"),
    case(WEIGHTS, [], "a number for each of the 2 classes", "0 of them"),
    case(WEIGHTS, [1.0, 2.0, 3.0], "a number for each of the 2 classes", "3 of them"),
    case(
        WEIGHTS,
        [1, 2],
        "a number for each of the 3 classes",
        "2 of them",
        ("task.kind", "multiclass"),
        ("task.classes", ["a", "b", "c"]),
    ),
    elsewhere(((WEIGHTS, [1.0, -0.5]),), f"{WEIGHTS}[1]", "0, or a number from 1e-6 to 1e6", "the number -0.5"),
    elsewhere(((WEIGHTS, [float("nan"), 1]),), f"{WEIGHTS}[0]", "0, or a number from 1e-6", "the number nan"),
    elsewhere(((WEIGHTS, [1, float("inf")]),), f"{WEIGHTS}[1]", "0, or a number from 1e-6", "the number inf"),
    elsewhere(((WEIGHTS, [1, 1e-60]),), f"{WEIGHTS}[1]", "0, or a number from 1e-6", "the number 1e-60"),
    case(WEIGHTS, [0, 0], "at least one number above 0", "only zeros: no row would count"),
    case(WEIGHTS, "balanced", 'nothing with task.kind = "regression"', "the text", ("task.kind", "regression")),
    case(WEIGHTS, [1, 2], 'nothing with task.kind = "regression"', "a list", ("task.kind", "regression")),
    case(WEIGHTS, "balanced", "nothing beside task.loss", "weighs its rows for itself", ("task.loss", "own:Loss")),
    case(WEIGHTS, [1, 2], "nothing beside task.loss", "weighs its rows for itself", ("task.loss", "own:Loss")),
]
NUMBERS = [
    case("seed", -1, "a whole number from 0", "the number -1"),
    case("seed", 2**64, "a whole number from 0", "the number beyond 64 bits"),
    case("training.epochs", 0, "a whole number from 1", "the number 0"),
    case("training.rounds", 0, "a whole number from 1", "the number 0"),
    case("training.batch_size", 1, "a whole number from 2", "the number 1"),
    case("training.learning_rate", 1e30, "a number above 0, at most 1000", "the number 1e+30"),
    case("training.learning_rate", 0.0, "a number above 0, at most 1000", "the number 0.0"),
    case("training.learning_rate", float("inf"), "a number above 0, at most 1000", "the number inf"),
    case("training.learning_rate", float("nan"), "a number above 0, at most 1000", "the number nan"),
    case("training.momentum", 1.0, "from 0 to less than 1", "the number 1.0"),
    case("training.momentum", -0.1, "from 0 to less than 1", "the number -0.1"),
    case(
        "training.momentum",
        0.9,
        '0 with training.optimizer = "adam"',
        "the number 0.9",
        ("training.optimizer", "adam"),
    ),
    case("training.evaluate_every", -1, "a whole number from 0", "the number -1"),
    case("split.validation", -0.1, "a fraction from 0", "the number -0.1"),
    case("split.validation", 1.0, "a fraction from 0 to less than 1", "the number 1.0"),
    case("split.test", 0.0, "a fraction above 0", "the number 0.0"),
    case("split.test", 1.0, "less than 1", "the number 1.0"),
    case("split.test", float("nan"), "a fraction above 0", "the number nan"),
    case("split", {"validation": 0.5, "test": 0.5}, "less than 1", "no row is left to train on"),
    case("security.rekey_every", 0, "a whole number from 1", "the number 0"),
    case("security.range_bits", 1, "from 2 to 31", "the number 1"),
    case("security.range_bits", 32, "from 2 to 31", "the number 32"),
    case("security.clip", 1e300, "a number from 1e-6 to 1e6", "the number 1e+300"),
    case("security.clip", 0.0, "a number from 1e-6 to 1e6", "the number 0.0"),
    case("security.update_clip", float("inf"), "a number from 1e-6 to 1e6", "the number inf"),
    case("dropout.deadline", 0.0, "a finite number above 0", "the number 0.0"),
    case("dropout.patience", -1.0, "a finite number above 0", "the number -1.0"),
    case("simulation.drop_probability", 1.1, "a number from 0 to 1", "the number 1.1"),
    case("simulation.drop_proportion", -0.1, "a number from 0 to 1", "the number -0.1"),
]
IDENTITIES = [
    elsewhere(
        (("identities", ALL_KEYS | {"nobody": BANK_KEY[::-1]}),),
        "identities.nobody",
        "aggregator or a party of this job (bank, north, south, shop)",
        'the text "nobody"',
    ),
    case("identities.bank", "c2hvcnQ=", "32 bytes", "8 characters", ("identities", ALL_KEYS)),
    case("identities.bank", "%" * 44, "32 bytes", "44 characters", ("identities", ALL_KEYS)),
    case("identities.bank", "é" * 44, "32 bytes", "44 characters", ("identities", ALL_KEYS)),
    case("identities.bank", f"{BANK_KEY[:-2]}B=", "32 bytes", "44 characters", ("identities", ALL_KEYS)),
    case("identities.north", BANK_KEY, "its own", "the key of bank", ("identities", ALL_KEYS)),
    elsewhere((("identities", WITHOUT_SHOP),), "identities.shop", "for all or for none", "nothing"),
    case("parties.nobody", "x.toml", "a party of this job (bank, north", 'the text "nobody"'),
    case("parties.aggregator", "x.toml", "a party of this job", 'the text "aggregator"'),
]
CASES = [*TYPES, *UNKNOWN, *NAMES, *GROUPS, *TASKS, *CLASS_WEIGHTS, *NUMBERS, *IDENTITIES]


@pytest.mark.parametrize(
    ("changes", "key", "expected", "found"),
    CASES,
    ids=[f"{number}-{one[1]}" for number, one in enumerate(CASES)],
)
def test_a_broken_job_is_refused_with_file_key_expected_and_found(
    changes: tuple[tuple[str, Any], ...], key: str, expected: str, found: str
) -> None:
    error = refusal_of(changed(*changes))
    assert (error.file, error.key) == ("job.toml", key)
    assert str(error).startswith(f"job.toml [{key}]: expected ")
    said_expected, said_found = str(error).split(", found ", maxsplit=1)
    assert expected in said_expected
    assert found in said_found


@pytest.mark.parametrize("key", ["name", "active", "groups"])
def test_a_missing_key_is_named(key: str) -> None:
    mapping = copy.deepcopy(GOOD)
    del mapping[key]
    error = refusal_of(mapping)
    assert error.key == key
    assert "found nothing: it must be given" in str(error)


def test_a_missing_key_of_a_list_item_is_named() -> None:
    mapping = copy.deepcopy(GOOD)
    del mapping["groups"][1]["columns"]
    assert "[groups[1].columns]: expected a list of texts, found nothing" in str(refusal_of(mapping))


def test_a_key_that_is_no_bare_toml_key_is_quoted() -> None:
    mapping = GOOD | {"parties": {"my bank": "x.toml"}}
    assert refusal_of(mapping).key == 'parties."my bank"'


def test_a_very_long_text_is_cut_in_the_message() -> None:
    assert len(str(refusal_of(changed(("active.party", "x" * 10_000))))) < 300


def test_no_message_shows_an_identity() -> None:
    short = BANK_KEY[:-2]
    assert short not in str(refusal_of(changed(("identities", ALL_KEYS), ("identities.bank", short))))


GOOD_CHANGES: list[tuple[tuple[str, Any], ...]] = [
    (),
    (("active.columns", []), ("security.insecure_label_only_active", True)),
    (("groups[1].columns", ["plan"]),),
    (("fusion.kind", "sum"),),
    (("groups[1].width", 9),),
    (("task.kind", "multiclass"), ("task.classes", ["a", "b", "c"])),
    (("task.classes", ["no", "yes"]),),
    ((WEIGHTS, "balanced"),),
    ((WEIGHTS, [0, 1e6]),),
    (("task.kind", "multiclass"), ("task.classes", ["a", "b", "c"]), (WEIGHTS, [1e-6, 0, 1])),
    (("task.kind", "regression"), ("task.loss", "losses.robust:Huber")),
    (("top.model", {"name": "nets.own:Net", "options": {"hidden": [8, 8], "bias": True}}),),
    (("training.momentum", 0.9),),
    (("training.evaluate_every", 0), ("training.rounds", 1), ("training.batch_size", 2)),
    (("split.validation", 0.4), ("split.test", 0.5)),
    (("security.range_bits", 2), ("security.word_bits", 16), ("security.clip", 3)),
    (("simulation.drop_probability", 1), ("simulation.drop_proportion", 0)),
    (("identities", ALL_KEYS), ("parties", {"bank": "bank.toml"})),
    (("name", "fig4-p0.3"), ("active.party", "x" * 64)),
]


@pytest.mark.parametrize("changes", GOOD_CHANGES, ids=range(len(GOOD_CHANGES)))
def test_a_job_at_the_edge_of_its_rules_is_taken(changes: tuple[tuple[str, Any], ...]) -> None:
    assert isinstance(job_from(changed(*changes)), Job)
