"""A download as it goes by. How long it will be is not told, so the bar only moves, beside what has arrived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from vfedsec.data.datasets.openml import Fetch, Watch


def watched(console: Console) -> Watch:
    """Shows downloads on a console."""

    @contextmanager
    def watch(fetch: Fetch) -> Iterator[None]:
        columns = (TextColumn("{task.description}"), BarColumn(), _Arrived(fetch.folder), TimeElapsedColumn())
        what = f"fetching {fetch.name} from OpenML"
        if not console.is_terminal:
            console.print(f"{what} ...")
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            progress.add_task(what, total=None)
            yield

    return watch


class _Arrived(ProgressColumn):
    """By how much a folder has grown."""

    max_refresh = 0.5

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._before = _size(folder)

    def render(self, _task: Task) -> Text:
        return Text(f"{decimal(max(0, _size(self._folder) - self._before))} arrived")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # a file that is being moved
            continue
    return total
