"""The paper's partitions: jobs that stand in the repository, and tables that are dealt from the data sets."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from published import published
from vfedsec.config.job import Job
from vfedsec.config.load import load_job, load_party, parse_job
from vfedsec.data.datasets import ImageDataset, TableDataset
from vfedsec.data.datasets.catalogue import ADULT, BANK, KnownTable
from vfedsec.data.encoders import encoders
from vfedsec.engines.files import party_files, table_of
from vfedsec.errors import DataError
from vfedsec.experiments.partitions import writing
from vfedsec.experiments.partitions.networks import embedding_width, group_width, input_width
from vfedsec.experiments.partitions.plan import ACTIVE, PARTITIONS, Partition
from vfedsec.experiments.partitions.texts import data_file, files
from vfedsec.experiments.partitions.writing import members, row_id, write_tables, write_texts
from vfedsec.models.registry import build_module, check_networks

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "paper"
ROWS = 40


def jobs() -> Iterator[tuple[Partition, str]]:
    return ((partition, job.file) for partition in PARTITIONS.values() for job in partition.jobs)


each_partition = pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS)
each_job = pytest.mark.parametrize(
    ("partition", "file"), list(jobs()), ids=[f"{partition.name}-{file}" for partition, file in jobs()]
)


def made_up(partition: Partition) -> TableDataset | ImageDataset:
    """A few rows in the form of the partition's data set."""
    known = partition.known
    labels = [known.classes[row % len(known.classes)] for row in range(ROWS)]
    if isinstance(known, KnownTable):
        columns = {
            name: [f"{name}-{row % column.categories}" if column.categories else str(row) for row in range(ROWS)]
            for name, column in known.columns.items()
        }
        return TableDataset(name="made up", source="memory", classes=known.classes, labels=labels, columns=columns)
    images = np.random.default_rng(0).integers(0, 256, (ROWS, known.side, known.side)).astype(np.uint8)
    return ImageDataset(name="made up", source="memory", classes=known.classes, labels=labels, images=images)


def write(partition: Partition, dataset: TableDataset | ImageDataset, folder: Path) -> list[Path]:
    return [*write_texts(partition, folder), *write_tables(partition, dataset, folder)]


def told_widths(partition: Partition) -> dict[str, int]:
    """How wide the comments in the jobs say that every party's table is."""
    return {party: input_width(partition, partition.jobs[0], held) for party, held in partition.holdings.items()}


def widths(name: str, folder: Path) -> dict[str, int]:
    """How wide every party's table is once it is encoded, as a simulation finds it."""
    list(write_texts(PARTITIONS[name], folder))
    path = folder / f"{PARTITIONS[name].jobs[0].file}.toml"
    job = load_job(path)
    own = party_files(job, path).items()
    return {
        party: one.width
        for party, one in encoders(job, {party: table_of(job, party, *file) for party, file in own}).items()
    }


# -- the files that stand in the repository --


def test_there_is_a_folder_for_each_partition_and_no_other() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if path.is_dir()} == set(PARTITIONS)


@each_partition
def test_the_files_in_the_repository_are_those_that_are_made(partition: Partition) -> None:
    paths = (EXAMPLES / partition.name).glob("*.toml")
    assert {path.name: path.read_text(encoding="utf-8") for path in paths} == files(partition)


@each_job
def test_a_job_names_all_parties_and_networks_that_can_be_built(partition: Partition, file: str) -> None:
    job = load_job(EXAMPLES / partition.name / f"{file}.toml")
    assert list(job.parties) == [job.active.party, *job.passive_parties] == list(partition.holdings)
    assert job.name == f"{partition.name}-{file}"
    check_networks(job)
    for party, path in job.parties.items():
        own = load_party(EXAMPLES / partition.name / path)
        assert (own.name, bool(own.data.label)) == (party, party == ACTIVE)
        assert own.data.source == data_file(partition, party)


@each_job
def test_the_widths_that_are_told_are_those_of_the_job(partition: Partition, file: str) -> None:
    (plan,) = (one for one in partition.jobs if one.file == file)
    job = parse_job(files(partition)[f"{file}.toml"])
    assert job.embedding_width == embedding_width(partition, plan)
    build_module(job.top.model, job.embedding_width, job.output_width, b"seed" * 8)
    inputs = input_width(partition, plan, partition.active)
    build_module(job.active.model, inputs, job.embedding_width, b"seed" * 8)
    for group, planned in zip(job.groups, partition.groups, strict=True):
        assert group.width == group_width(partition, plan)
        build_module(group.model, input_width(partition, plan, planned.holding), group.width, b"seed" * 8)


@pytest.mark.parametrize(
    ("name", "file", "width", "hidden"),
    [
        ("bank", "overhead", 64, None),
        ("emnist-4", "overhead-cnn", 600, [120]),
        ("emnist-4", "overhead-mlp", 128, [256, 128, 64]),
        ("emnist-4", "dropout-cnn", 3 * 200, [120]),
        ("emnist-8", "dropout-cnn", 7 * 86, [120]),
        ("fashion-mnist-4", "dropout-mlp", 3 * 43, [256, 128, 64]),
        ("bank-5", "dropout", 4 * 32, [256, 128, 64]),
    ],
)
def test_the_embedding_is_as_wide_as_in_the_paper_or_nearly(
    name: str, file: str, width: int, hidden: list[int] | None
) -> None:
    job = load_job(EXAMPLES / name / f"{file}.toml")
    assert job.embedding_width == width
    assert job.top.model.options.get("hidden") == hidden


@each_job
def test_training_is_the_papers(partition: Partition, file: str) -> None:
    job = load_job(EXAMPLES / partition.name / f"{file}.toml")
    assert (job.training.batch_size, job.training.learning_rate, job.top.activation) == (256, 0.01, "relu")
    assert job.security.mode == "secure"
    if file.startswith("overhead"):
        assert (job.fusion.kind, job.security.rekey_every, job.training.rounds) == ("sum", 5, 5)
    elif file == "job":
        overhead = load_job(EXAMPLES / partition.name / "overhead.toml")
        assert (job.fusion, job.top, job.active, job.groups) == (
            overhead.fusion,
            overhead.top,
            overhead.active,
            overhead.groups,
        )
        assert (job.training.epochs, job.dropout.policy) == (10, "discard")
    else:
        assert (job.fusion.kind, job.dropout.policy, job.simulation.drop_proportion) == ("concat", "pad", 0.1)
        assert all(len(group.parties) == 1 for group in job.groups)


def columns_of(job: Job) -> list[str]:
    return sorted([*job.active.columns, *(name for group in job.groups for name in group.columns)])


@pytest.mark.parametrize("parties", [5, 8])
def test_every_column_is_dealt_to_one_party(parties: int) -> None:
    bank, adult = PARTITIONS[f"bank-{parties}"], PARTITIONS[f"adult-{parties}"]
    assert len(bank.holdings) == len(adult.holdings) == parties
    texts = files(bank)
    assert columns_of(parse_job(texts["dropout-with-duration.toml"])) == sorted(BANK.columns)
    assert columns_of(parse_job(texts["dropout.toml"])) == sorted(set(BANK.columns) - {"duration"})
    assert columns_of(parse_job(files(adult)["dropout.toml"])) == sorted(ADULT.columns)


def test_columns_are_not_dealt_in_the_order_of_the_table() -> None:
    columns = list(BANK.columns)
    hands = [[columns.index(name) for name in held.columns] for held in PARTITIONS["bank-8"].holdings.values()]
    assert hands not in ([[i, i + 8] for i in range(8)], [[2 * i, 2 * i + 1] for i in range(8)])


@pytest.mark.parametrize(("name", "heights"), [("emnist-4", [7] * 4), ("fashion-mnist-8", [4] * 4 + [3] * 4)])
def test_slices_cover_an_image_from_the_top(name: str, heights: list[int]) -> None:
    slices = [held.lines for held in PARTITIONS[name].holdings.values()]
    assert [len(lines) for lines in slices] == heights
    assert [line for lines in slices for line in lines] == list(range(28))


# -- the tables that are dealt --


@each_partition
def test_every_group_has_every_row_once_and_every_party_an_order_of_its_own(partition: Partition) -> None:
    dealt = members(partition, ROWS)
    assert list(dealt) == list(partition.holdings)
    everybody = list(range(ROWS))
    assert sorted(dealt[ACTIVE]) == everybody
    for group in partition.groups:
        assert sorted(row for party in group.parties for row in dealt[party]) == everybody
        assert {len(dealt[party]) for party in group.parties} == {ROWS // len(group.parties)}
    assert all(list(rows) != sorted(rows) for rows in dealt.values())
    orders = [tuple(row for row in dealt[ACTIVE] if row in set(rows)) for rows in dealt.values()]
    assert all(tuple(rows) != order for rows, order in zip(list(dealt.values())[1:], orders[1:], strict=True))


@pytest.mark.parametrize("name", ["bank", "adult-8"])
def test_the_tables_put_together_are_the_data_set(name: str, tmp_path: Path) -> None:
    partition = PARTITIONS[name]
    dataset = made_up(partition)
    assert isinstance(dataset, TableDataset)
    write(partition, dataset, tmp_path)
    place = {row_id(row): row for row in range(ROWS)}
    seen: dict[str, list[int]] = {}
    for party in partition.holdings:
        with (tmp_path / data_file(partition, party)).open(newline="") as stream:
            for row in csv.DictReader(stream):
                index = place[row.pop("id")]
                for column, cell in row.items():
                    expected = dataset.labels if column == partition.known.label else dataset.columns[column]
                    assert cell == expected[index]
                    seen.setdefault(column, []).append(index)
    assert all(sorted(rows) == list(range(ROWS)) for rows in seen.values())
    assert set(seen) == {*columns_of(parse_job(next(iter(files(partition).values())))), partition.known.label}


def reassembled(partition: Partition, folder: Path, rows: int) -> tuple[np.ndarray, list[str]]:
    """The images, from all parties' slices by their ids, and the labels."""
    slices, labels = [], []
    for party in partition.holdings:
        with np.load(folder / data_file(partition, party), allow_pickle=False) as arrays:
            order = np.argsort(arrays["id"])
            assert arrays["id"][order].tolist() == [row_id(row) for row in range(rows)]
            assert set(arrays) == {"id", "image"} | ({"label"} if party == ACTIVE else set())
            slices.append(arrays["image"][order])
            labels = arrays["label"][order].tolist() if party == ACTIVE else labels
    return np.concatenate(slices, axis=1), labels


@pytest.mark.parametrize("name", ["emnist-4", "fashion-mnist-8"])
def test_the_slices_put_together_are_the_images(name: str, tmp_path: Path) -> None:
    dataset = made_up(PARTITIONS[name])
    assert isinstance(dataset, ImageDataset)
    write(PARTITIONS[name], dataset, tmp_path)
    images, labels = reassembled(PARTITIONS[name], tmp_path, ROWS)
    assert np.array_equal(images, dataset.images) and images.dtype == np.uint8
    assert labels == dataset.labels


@pytest.mark.parametrize("name", ["emnist-4", "fashion-mnist-8"])
def test_slices_are_read_as_wide_as_the_jobs_say(name: str, tmp_path: Path) -> None:
    partition = PARTITIONS[name]
    write(partition, made_up(partition), tmp_path)
    assert widths(name, tmp_path) == told_widths(partition)


@pytest.mark.parametrize("name", ["bank", "emnist-4"])
def test_the_same_data_set_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    first, second = (write(PARTITIONS[name], made_up(PARTITIONS[name]), tmp_path / folder) for folder in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_time_does_not_stand_in_an_archive(tmp_path: Path) -> None:
    *_, path = write(PARTITIONS["emnist-4"], made_up(PARTITIONS["emnist-4"]), tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    paths = write(PARTITIONS["bank"], made_up(PARTITIONS["bank"]), tmp_path)
    before = {path: path.stat().st_mtime_ns for path in paths}
    write(PARTITIONS["bank"], made_up(PARTITIONS["bank"]), tmp_path)
    assert {path: path.stat().st_mtime_ns for path in paths} == before


@pytest.mark.parametrize("name", ["overhead.toml", "data/client3.csv"])
def test_another_file_of_that_name_is_never_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / name).write_text("mine")
    with pytest.raises(DataError, match=f"{name}: expected no such file or the very one .* found another; it is left"):
        write(PARTITIONS["bank"], made_up(PARTITIONS["bank"]), tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert not list(tmp_path.rglob("*.part"))


def test_no_other_file_is_overwritten_on_the_way_nor_through_a_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "bank", tmp_path / "mine"
    folder.mkdir()
    elsewhere.write_text("mine")
    (folder / "job.toml.part").symlink_to(elsewhere)
    (folder / "active.toml.part").write_text("mine")
    write(PARTITIONS["bank"], made_up(PARTITIONS["bank"]), folder)
    assert elsewhere.read_text() == (folder / "active.toml.part").read_text() == "mine"
    assert not (folder / "job.toml").is_symlink()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, os.strerror(28))])
def test_a_file_that_was_not_finished_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def half(columns: dict[str, list[str]], stream: BinaryIO) -> None:
        stream.write(b"id,age\n")
        raise error

    monkeypatch.setattr(writing, "_put_csv", half)
    with pytest.raises((KeyboardInterrupt, DataError)) as ended:
        write(PARTITIONS["bank"], made_up(PARTITIONS["bank"]), tmp_path)
    if isinstance(error, OSError):
        path = tmp_path / "data" / "active.csv"
        assert str(ended.value) == f"{path}: expected a file that can be written, found: No space left on device"
    assert list((tmp_path / "data").iterdir()) == []


# -- with the published data sets, where they are --


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bank", [57, 3, 3, 20, 20]), ("adult", [27, 63, 63, 16, 16])],
)
def test_encoded_tables_are_as_wide_as_in_the_paper(name: str, expected: list[int], tmp_path: Path) -> None:
    list(write_tables(PARTITIONS[name], published(name), tmp_path))
    found = widths(name, tmp_path)
    assert found == dict(zip(["active", "client1", "client2", "client3", "client4"], expected, strict=True))


@pytest.mark.parametrize("name", ["bank-5", "bank-8", "adult-5", "adult-8"])
def test_encoded_tables_are_as_wide_as_the_jobs_say(name: str, tmp_path: Path) -> None:
    partition = PARTITIONS[name]
    list(write_tables(partition, published(partition.known.key), tmp_path))
    assert widths(name, tmp_path) == told_widths(partition)


@pytest.mark.parametrize("name", ["emnist-4", "fashion-mnist-8"])
def test_the_published_images_are_all_in_the_slices(name: str, tmp_path: Path) -> None:
    dataset = published(PARTITIONS[name].known.key)
    assert isinstance(dataset, ImageDataset)
    list(write_tables(PARTITIONS[name], dataset, tmp_path))
    images, labels = reassembled(PARTITIONS[name], tmp_path, len(dataset))
    assert np.array_equal(images, dataset.images)
    assert labels == dataset.labels
