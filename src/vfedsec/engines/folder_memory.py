"""A folder in which a party keeps what it remembers from run to run, for its owner alone."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


class FolderMemory:
    """Implements `Memory`. The folder is made when something is first kept; files are replaced whole or not at all."""

    def __init__(self, folder: Path, table: str, warn: Callable[[str], None]) -> None:
        """`table` tells the party's tables apart, however its folder is called at the moment."""
        self._folder = folder
        self._table = table
        self._warn = warn
        self._cannot_keep = False

    def load(self, name: str) -> bytes | None:
        """What was saved under this name, or nothing."""
        path = self._path(name)
        try:
            # A pipe would be waited for, and a device may have no end.
            if path.exists() and not path.is_file():
                raise OSError(errno.EINVAL, "Not a regular file")
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._warn(f"what {self._folder} holds of the last alignment cannot be read: {error.strerror}")
            return None

    def save(self, name: str, data: bytes) -> None:
        """Keep this in place of what had the name; warn where that cannot be."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._replace(self._path(name), data)
        except OSError as error:
            if not self._cannot_keep:  # once is enough, however many partners there are
                self._warn(
                    f"the alignment cannot be kept in {self._folder}: {error.strerror}; the next run aligns again"
                )
            self._cannot_keep = True

    def warn(self, message: str) -> None:
        """Tell the party's owner."""
        self._warn(message)

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(f"{self._table}\n{name}".encode()).hexdigest()
        return self._folder / f"{digest[:32]}.alignment"

    def _replace(self, path: Path, data: bytes) -> None:
        handle, written = tempfile.mkstemp(dir=self._folder, suffix=".new")  # readable by its owner alone
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(written, path)
        except BaseException:  # such as Ctrl-C
            os.unlink(written)
            raise
