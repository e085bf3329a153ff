"""What a job or party file may not say although every key has the right type.

Each rule is a function that yields what it refuses; `check_job` and `check_party` raise the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from vfedsec.config.class_weights import class_weights_that_weigh_nothing
from vfedsec.config.identities import identities_that_do_not_hold
from vfedsec.config.job import AGGREGATOR, Job
from vfedsec.config.networks import networks_that_cannot_be_named
from vfedsec.config.party import PartyFile
from vfedsec.config.ranges import numbers_out_of_range
from vfedsec.config.refusals import Refusal, join_key, shown

_JOB_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_EXPECTED = "a name of 1 to 64 letters, digits, _ or -"


def check_job(job: Job, file: str = "") -> None:
    """Raise `ConfigError` for the first rule that the job breaks."""
    for rule in _RULES:
        for refusal in rule(job):
            raise refusal.error(file)


def check_party(party: PartyFile, file: str = "") -> None:
    """Raise `ConfigError` for the first rule that the party file breaks."""
    for rule in _PARTY_RULES:
        for refusal in rule(party):
            raise refusal.error(file)


def _job_name(job: Job) -> Iterator[Refusal]:
    if not _JOB_NAME.fullmatch(job.name):
        expected = "a name of 1 to 64 letters, digits, _, - or (not first) ."
        yield Refusal("name", expected, shown(job.name))


def _no_groups(job: Job) -> Iterator[Refusal]:
    if not job.groups:
        yield Refusal("groups", "at least one [[groups]]", "none")


def _groups_without_parties(job: Job) -> Iterator[Refusal]:
    for index, group in enumerate(job.groups):
        if not group.parties:
            yield Refusal(f"groups[{index}].parties", "at least one party", "an empty list")


def _groups_without_columns(job: Job) -> Iterator[Refusal]:
    for index, group in enumerate(job.groups):
        if not group.columns:
            yield Refusal(f"groups[{index}].columns", "at least one column", "an empty list")


def _group_names(job: Job) -> Iterator[Refusal]:
    names = [(f"groups[{index}].name", group.name) for index, group in enumerate(job.groups)]
    for key, name in names:
        if not _NAME.fullmatch(name):
            yield Refusal(key, _NAME_EXPECTED, shown(name))
    yield from _repeated(names, "a name that no other group has")


def _party_names(job: Job) -> Iterator[Refusal]:
    names = _named_parties(job)
    for key, name in names:
        if not _NAME.fullmatch(name):
            yield Refusal(key, _NAME_EXPECTED, shown(name))
        if name == AGGREGATOR:
            yield Refusal(key, "the name of a party", shown(name), "it means the aggregator itself")
    yield from _repeated(names, "a name that no other party has")


def _columns(job: Job) -> Iterator[Refusal]:
    lists = {f"groups[{index}].columns": group.columns for index, group in enumerate(job.groups)}
    for key, columns in {"active.columns": job.active.columns, **lists}.items():
        yield from _texts(key, columns, "a column")


def _classes(job: Job) -> Iterator[Refusal]:
    yield from _texts("task.classes", job.task.classes, "a class")


def _label_only_active_party(job: Job) -> Iterator[Refusal]:
    if not job.active.columns and not job.security.insecure_label_only_active:
        yield Refusal(
            "active.columns",
            "at least one column",
            "an empty list",
            "without an embedding of the active party in the sum, nothing hides a lone party's"
            " embedding from the aggregator; security.insecure_label_only_active = true accepts"
            " that the others' embeddings are bare",
        )


def _class_count(job: Job) -> Iterator[Refusal]:
    count = len(job.task.classes)
    fits, expected = {
        "binary": (count in (0, 2), "2 classes, or none for 0 and 1, with the kind binary"),
        "multiclass": (count >= 3, "at least 3 classes with the kind multiclass"),
        "regression": (count == 0, "no classes with the kind regression"),
    }[job.task.kind]
    if not fits:
        yield Refusal("task.classes", expected, f"{count} of them")


def _summed_widths(job: Job) -> Iterator[Refusal]:
    if job.fusion.kind != "sum":
        return
    for index, group in enumerate(job.groups):
        if group.width != job.groups[0].width:
            yield Refusal(
                f"groups[{index}].width",
                f'{job.groups[0].width}, the width of groups[0], with fusion.kind = "sum"',
                shown(group.width),
            )


def _momentum_without_sgd(job: Job) -> Iterator[Refusal]:
    if job.training.momentum and job.training.optimizer != "sgd":
        expected = f'0 with training.optimizer = "{job.training.optimizer}"'
        yield Refusal(
            "training.momentum",
            expected,
            shown(job.training.momentum),
            "momentum is a number of sgd",
        )


def _nothing_to_train_on(job: Job) -> Iterator[Refusal]:
    held_out = job.split.validation + job.split.test
    if held_out >= 1:
        expected = "split.validation and split.test to add up to less than 1"
        yield Refusal("split", expected, shown(held_out), "no row is left to train on")


def _files_of_strangers(job: Job) -> Iterator[Refusal]:
    known = (job.active.party, *job.passive_parties)
    for name in job.parties:
        if name not in known:
            expected = f"a party of this job ({', '.join(known)})"
            yield Refusal(join_key("parties", name), expected, shown(name))


def _party_file_name(party: PartyFile) -> Iterator[Refusal]:
    if not _NAME.fullmatch(party.name):
        yield Refusal("name", _NAME_EXPECTED, shown(party.name))


def _table_without_names(party: PartyFile) -> Iterator[Refusal]:
    data = party.data
    given = [key for key in ("source", "query", "arrays") if getattr(data, key)]
    if not given:
        yield Refusal("data.source", "a file name, or data.query, or data.arrays", "none of them")
    if len(given) > 1:
        found = " and ".join(f"data.{key}" for key in given)
        yield Refusal(f"data.{given[1]}", "one of data.source, data.query and data.arrays", found)
    if data.attach and not data.query:
        yield Refusal("data.attach", "databases for data.query", "no such query")
    if data.table and not data.source:
        yield Refusal("data.table", "a table of the database data.source", "no such database")
    if not data.id:
        yield Refusal("data.id", "the name of a column", "an empty text")


def _label_that_is_the_id(party: PartyFile) -> Iterator[Refusal]:
    if party.data.label == party.data.id:
        yield Refusal("data.label", "a column other than data.id", shown(party.data.label))


def _folder_that_cannot_be(party: PartyFile) -> Iterator[Refusal]:
    if "\0" in party.remember:
        yield Refusal("remember", "a folder or an empty text", shown(party.remember))


def _named_parties(job: Job) -> list[tuple[str, str]]:
    passive = [
        (f"groups[{index}].parties[{place}]", name)
        for index, group in enumerate(job.groups)
        for place, name in enumerate(group.parties)
    ]
    return [("active.party", job.active.party), *passive]


def _texts(key: str, texts: Sequence[str], noun: str) -> Iterator[Refusal]:
    items = [(f"{key}[{index}]", text) for index, text in enumerate(texts)]
    for place, text in items:
        if not text:
            yield Refusal(place, f"the name of {noun}", "an empty text")
    yield from _repeated(items, f"{noun} that is not in the list yet")


def _repeated(items: Sequence[tuple[str, str]], expected: str) -> Iterator[Refusal]:
    first: dict[str, str] = {}
    for key, text in items:
        if text in first:
            yield Refusal(key, expected, shown(text), f"{first[text]} has it")
        first.setdefault(text, key)


_RULES: tuple[Callable[[Job], Iterator[Refusal]], ...] = (
    _job_name,
    _no_groups,
    _groups_without_parties,
    _groups_without_columns,
    _group_names,
    _party_names,
    _columns,
    _classes,
    _label_only_active_party,
    _class_count,
    class_weights_that_weigh_nothing,
    numbers_out_of_range,
    _summed_widths,
    _momentum_without_sgd,
    _nothing_to_train_on,
    networks_that_cannot_be_named,
    identities_that_do_not_hold,
    _files_of_strangers,
)
_PARTY_RULES: tuple[Callable[[PartyFile], Iterator[Refusal]], ...] = (
    _party_file_name,
    _table_without_names,
    _label_that_is_the_id,
    _folder_that_cannot_be,
)
