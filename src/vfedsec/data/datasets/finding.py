"""Looking for the files of a data set: the folder that was named, then a package's, each file by its checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from vfedsec.data.datasets.catalogue import KnownDataset, KnownFile
from vfedsec.errors import DataError

DATA_VARIABLE = "VFEDSEC_DATA"
"""The environment variable that names a folder with data sets."""


def find(known: KnownDataset, data_dir: Path | None) -> list[Path] | None:
    """All files of a data set, `None` where no folder has any.

    `data_dir` goes before `VFEDSEC_DATA`, and either before the folder of a package. Raises `DataError` when the folder
    that was named is none, or when one has some of the files and not all.
    """
    for folder in folders(known, data_dir):
        paths = [folder / file.name for file in known.files]
        absent = [path for path in paths if not path.exists()]
        if not absent:
            return paths
        if len(absent) < len(paths):
            names = ", ".join(file.name for file in known.files)
            raise DataError(f"{known.name}: expected {names} in {folder}, found no {absent[0].name}")
    return None


def folders(known: KnownDataset, data_dir: Path | None) -> list[Path]:
    """Where to look, in order. Raises `DataError` when the folder that was named is none."""
    named = data_dir or os.environ.get(DATA_VARIABLE)
    by = "" if data_dir else f", which {DATA_VARIABLE} names"
    places = [Path(named)] if named else []
    for folder in places:
        if not folder.is_dir():
            raise DataError(f"{known.name}: expected a folder with data sets at {folder}{by}, found none")
    packaged = dict.fromkeys(Path(file.folder) for file in known.files if file.folder)
    return [*places, *packaged]


def read(path: Path, file: KnownFile) -> bytes:
    """The content of a file, when it is the published one.

    No more of it is read than the published one has. Raises `DataError` for another file of that name.
    """
    try:
        with path.open("rb") as stream:
            content = stream.read(file.size + 1)
    except OSError as error:
        raise DataError(f"{path}: expected a readable file, found: {error.strerror}") from None
    if len(content) != file.size:
        found = "more" if len(content) > file.size else str(len(content))
        raise DataError(f"{path}: expected the published file of {file.size} bytes, found {found}")
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(f"{path}: expected the published file, SHA-256 {file.sha256}, found {digest}")
    return content
