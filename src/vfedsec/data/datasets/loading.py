"""One of the known data sets, wherever it can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vfedsec.data.datasets.catalogue import KNOWN, KnownDataset, KnownImages, KnownTable
from vfedsec.data.datasets.dataset import ImageDataset, TableDataset
from vfedsec.data.datasets.finding import find, folders, read
from vfedsec.data.datasets.images import read_images, upright
from vfedsec.data.datasets.openml import Watch, fetch_images, fetch_rows, unwatched
from vfedsec.data.datasets.tables import MISSING, read_rows
from vfedsec.errors import DataError


def load(name: str, data_dir: Path | None = None, watch: Watch = unwatched) -> TableDataset | ImageDataset:
    """A data set by its key in `KNOWN`.

    Its files are looked for in `data_dir` (left out: in the folder that `VFEDSEC_DATA` names), then where a package of
    the system puts them, and refused when they are not the published ones. Where there are none, it comes from OpenML,
    which `watch` can follow.

    Raises:
        DataError: There is no data set of that name, it is nowhere to be had, or what was found is not what is known of
            it.
    """
    if name not in KNOWN:
        raise DataError(f"expected a data set of {', '.join(KNOWN)}, found {name!r}")
    known = KNOWN[name]
    return load_table(known, data_dir, watch) if isinstance(known, KnownTable) else load_images(known, data_dir, watch)


def load_table(known: KnownTable, data_dir: Path | None = None, watch: Watch = unwatched) -> TableDataset:
    """A table by what is known of it. Raises `DataError` as `load` does."""
    paths = find(known, data_dir)
    source = _source(known, paths)
    rows = (
        fetch_rows(known, folders(known, data_dir), watch)
        if paths is None
        else read_rows(known, paths, _contents(known, paths))
    )
    _check_rows(source, len(rows), known.rows)
    *cells, labels = (list(column) for column in zip(*rows, strict=True))
    columns = dict(zip(known.columns, cells, strict=True))
    _check_columns(known, source, columns)
    _check_classes(known, source, set(labels))
    return TableDataset(
        name=known.name,
        source=source,
        classes=known.classes,
        labels=labels,
        train_rows=known.train_rows if paths else None,  # OpenML promises no order
        columns=columns,
    )


def load_images(known: KnownImages, data_dir: Path | None = None, watch: Watch = unwatched) -> ImageDataset:
    """Images by what is known of them. Raises `DataError` as `load` does."""
    paths = find(known, data_dir)
    source = _source(known, paths)
    train_rows = None
    if paths is None:
        images, numbers = fetch_images(known, folders(known, data_dir), watch)
        _check_rows(source, len(images), known.openml_rows)
    else:
        images, numbers, train_rows = read_images(known, paths, _contents(known, paths))
        _check_rows(source, len(images), known.rows)
    _check_classes(known, source, {dict(enumerate(known.classes)).get(number, "") for number in set(numbers.tolist())})
    return ImageDataset(
        name=known.name if paths else known.openml_name,
        source=source,
        classes=known.classes,
        labels=[known.classes[number] for number in numbers.tolist()],
        train_rows=train_rows,
        images=images if paths else upright(known, images, numbers),
    )


def _source(known: KnownDataset, paths: Sequence[Path] | None) -> str:
    if paths is None:
        return f"OpenML's data set {known.openml}"
    return f"{', '.join(path.name for path in paths)} in {paths[0].parent}"


def _contents(known: KnownDataset, paths: Sequence[Path]) -> list[bytes]:
    return [read(path, file) for path, file in zip(paths, known.files, strict=True)]


def _check_rows(source: str, found: int, expected: int) -> None:
    if found != expected:
        raise DataError(f"{source}: expected {expected} rows, found {found}")


def _check_columns(known: KnownTable, source: str, columns: dict[str, list[str]]) -> None:
    for name, column in known.columns.items():
        values = set(columns[name])
        if (MISSING in values) != column.has_missing:
            kind = "missing values" if column.has_missing else "no missing value"
            raise DataError(f"{source}: expected {kind} in column {name!r}, found otherwise")
        texts = len(values - {MISSING})
        if column.categories and texts != column.categories:
            raise DataError(f"{source}: expected {column.categories} categories in column {name!r}, found {texts}")


def _check_classes(known: KnownDataset, source: str, found: set[str]) -> None:
    if found != set(known.classes):
        raise DataError(f"{source}: expected rows of {len(known.classes)} classes, found others or fewer")
