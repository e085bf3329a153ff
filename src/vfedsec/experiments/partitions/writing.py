"""The files of a partition on disk: jobs and party files, and every party's rows in an order of its own."""

from __future__ import annotations

import csv
import filecmp
import io
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vfedsec.data.datasets.dataset import ImageDataset, TableDataset
from vfedsec.errors import DataError
from vfedsec.experiments.partitions.plan import ACTIVE, IMAGE, SEED, Holding, Partition
from vfedsec.experiments.partitions.texts import ID, data_file, files, label

Rows = NDArray[np.int64]


def write_texts(partition: Partition, folder: Path) -> Iterator[Path]:
    """Write the job and party files into a folder, made if need be, and yield each as it stands there.

    Raises `DataError` when the folder cannot be written, or when a file of that name holds anything else: none is
    overwritten.
    """
    for name, text in files(partition).items():
        yield _written(folder / name, partial(_put, text.encode()))


def write_tables(partition: Partition, dataset: TableDataset | ImageDataset, folder: Path) -> Iterator[Path]:
    """Write every party's rows of a data set, and yield each file as it stands there.

    The same data set gives the same bytes. Raises `DataError` as `write_texts` does.
    """
    rows_of = members(partition, len(dataset))
    for name, holding in partition.holdings.items():
        content = _content(partition, dataset, name, holding, rows_of[name])
        yield _written(folder / data_file(partition, name), content)


def members(partition: Partition, rows: int) -> dict[str, Rows]:
    """Which rows of a data set every party has, in the order of its own table.

    The active party has all of them, and so have the parties of a group together, each as many as the others.
    """
    dealt = {ACTIVE: np.random.default_rng([SEED, 0]).permutation(rows)}
    for place, group in enumerate(partition.groups, start=1):
        order = np.random.default_rng([SEED, place]).permutation(rows)
        dealt |= dict(zip(group.parties, np.array_split(order, len(group.parties)), strict=True))
    return dealt


def row_id(row: int) -> str:
    """What all parties call a row of the data set."""
    return f"row-{row + 1:06d}"


_Content = Callable[[BinaryIO], None]


def _content(
    partition: Partition, dataset: TableDataset | ImageDataset, party: str, holding: Holding, rows: Rows
) -> _Content:
    ids = [row_id(row) for row in rows.tolist()]
    labels = {label(partition): [dataset.labels[row] for row in rows.tolist()]} if party == ACTIVE else {}
    if isinstance(dataset, ImageDataset):
        pieces = dataset.images[rows, holding.lines.start : holding.lines.stop]
        arrays = {ID: np.array(ids), IMAGE: pieces} | {name: np.array(texts) for name, texts in labels.items()}
        return partial(_put_arrays, arrays)
    cells = {name: [dataset.columns[name][row] for row in rows.tolist()] for name in holding.columns}
    return partial(_put_csv, {ID: ids} | cells | labels)


def _put(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _put_csv(columns: dict[str, list[str]], stream: BinaryIO) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    stream.write(text.getvalue().encode())


def _put_arrays(arrays: dict[str, NDArray[Any]], stream: BinaryIO) -> None:
    """What `np.savez_compressed` writes, with the year 1980 for the time, so that equal arrays make equal files."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as inner:
                np.lib.format.write_array(inner, array, allow_pickle=False)


def _written(path: Path, content: _Content) -> Path:
    """Either the whole file or none: it gets its name when it is complete."""
    # Of a name that nobody else has: not another run under way, nor a link that leads elsewhere.
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("xb") as stream:
                content(stream)
            _settle(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{path}: expected a file that can be written, found: {error.strerror}") from None
    return path


def _settle(part: Path, path: Path) -> None:
    if not path.exists():
        os.replace(part, path)
    elif not filecmp.cmp(part, path, shallow=False):
        raise DataError(
            f"{path}: expected no such file or the very one that is made, found another; it is left as it is"
        )
