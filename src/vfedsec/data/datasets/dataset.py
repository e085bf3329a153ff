"""A data set in memory: what every source of it gives, whatever its format was."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Images = NDArray[np.uint8]
"""Grey pixels from 0, the ground, to 255, the ink, upright (rows, height, width)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """What tables and images have in common."""

    name: str
    """What to call it in a report; another name for another selection of rows."""
    source: str
    """Where it was found: the files, or the number at OpenML."""
    classes: tuple[str, ...]
    """What a label can be, in order."""
    labels: list[str] = field(repr=False)
    """The class of every row."""
    train_rows: int | None = None
    """So many first rows are the published training part, the others the test part. `None` where none is published,
    or where the copy does not tell."""

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableDataset(Dataset):
    """Rows of texts and numbers."""

    columns: dict[str, list[str]] = field(repr=False)
    """Cells as texts, by column, in the published order; `?` stands for a missing value."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageDataset(Dataset):
    """Rows of images."""

    images: Images = field(repr=False)
