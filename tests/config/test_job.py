"""What a job tells about itself."""

from __future__ import annotations

from vfedsec.config.job import Active, Fusion, Group, Job, Task

JOB = Job(
    name="demo",
    active=Active(party="bank", columns=("age",)),
    groups=(
        Group(name="telco", parties=("north", "south"), columns=("plan",), width=8),
        Group(name="retail", parties=("shop",), columns=("basket",), width=4),
    ),
)


def with_parts(fusion: Fusion, task: Task) -> Job:
    return Job(name="demo", active=JOB.active, groups=JOB.groups[:1], fusion=fusion, task=task)


def test_passive_parties_come_group_by_group() -> None:
    assert JOB.passive_parties == ("north", "south", "shop")


def test_concatenated_groups_add_their_widths() -> None:
    assert JOB.embedding_width == 12


def test_summed_groups_share_one_width() -> None:
    assert with_parts(Fusion(kind="sum"), Task()).embedding_width == 8


def test_a_multiclass_job_has_an_output_a_class() -> None:
    task = Task(kind="multiclass", classes=("a", "b", "c"))
    assert with_parts(Fusion(), task).output_width == 3


def test_a_binary_job_has_one_output() -> None:
    assert with_parts(Fusion(), Task(classes=("no", "yes"))).output_width == 1
