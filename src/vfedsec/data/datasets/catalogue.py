"""What is known of each data set without having it: names, columns, counts, checksums.

The partitions and their job files are made from this alone. Whatever is read is held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownFile:
    """A published file, told by its content."""

    name: str
    size: int
    """In bytes."""
    sha256: str
    folder: str = ""
    """Where a Linux distribution's package puts it."""


@dataclass(frozen=True)
class KnownColumn:
    """What stands in a column of a table."""

    categories: int = 0
    """How many different texts, the missing one not counted; 0 for numbers."""
    has_missing: bool = False
    infers_otherwise: bool = False
    """Whether its texts would be read as another kind than categories if nothing were declared."""

    @property
    def width(self) -> int:
        """How many features it is encoded to."""
        return max(self.categories, 1) + self.has_missing


@dataclass(frozen=True, kw_only=True)
class KnownDataset:
    """What tables and images have in common."""

    key: str
    """What commands call it."""
    name: str
    """What reports call it, from the files."""
    files: tuple[KnownFile, ...]
    rows: int
    train_rows: int | None
    """Of the files: so many first rows are the published training part; `None` where none is published."""
    classes: tuple[str, ...]
    openml: int
    """The number of the data set at OpenML."""

    @property
    def test_fraction(self) -> float | None:
        """The share of the published test part, to four digits."""
        return None if self.train_rows is None else round(1 - self.train_rows / self.rows, 4)


@dataclass(frozen=True, kw_only=True)
class KnownTable(KnownDataset):
    """Rows of texts and numbers."""

    columns: Mapping[str, KnownColumn]
    label: str
    openml_columns: Mapping[str, str]
    """What OpenML calls the columns, by the names used here."""
    openml_classes: Mapping[str, str]
    """The classes by what stands for them at OpenML."""

    def width(self, columns: tuple[str, ...]) -> int:
        """How many features these columns are encoded to."""
        return sum(self.columns[name].width for name in columns)


@dataclass(frozen=True, kw_only=True)
class KnownImages(KnownDataset):
    """Rows of images."""

    side: int = 28
    """Height and width in pixels."""
    openml_name: str
    openml_rows: int
    upright_by: str = ""
    """A class that tells by its ink whether images are transposed: drawn upright, it has more at the top right than at
    the bottom left. Left out where no copy is known to be transposed."""


def _numbers(*names: str) -> dict[str, KnownColumn]:
    return dict.fromkeys(names, KnownColumn())


def _yes_or_no(*names: str) -> dict[str, KnownColumn]:
    return dict.fromkeys(names, KnownColumn(2, infers_otherwise=True))


_BANK_COLUMNS = {
    **_numbers("age"),
    "job": KnownColumn(12),
    "marital": KnownColumn(3),
    "education": KnownColumn(4),
    **_yes_or_no("default"),
    **_numbers("balance"),
    **_yes_or_no("housing", "loan"),
    "contact": KnownColumn(3),
    "day": KnownColumn(31, infers_otherwise=True),
    "month": KnownColumn(12),
    **_numbers("duration", "campaign", "pdays", "previous"),
    "poutcome": KnownColumn(4),
}

_ADULT_COLUMNS = {
    **_numbers("age"),
    "workclass": KnownColumn(8, has_missing=True),
    **_numbers("fnlwgt"),
    "education": KnownColumn(16),
    **_numbers("education-num"),
    "marital-status": KnownColumn(7),
    "occupation": KnownColumn(14, has_missing=True),
    "relationship": KnownColumn(6),
    "race": KnownColumn(5),
    "gender": KnownColumn(2),
    **_numbers("capital-gain", "capital-loss", "hours-per-week"),
    "native-country": KnownColumn(41, has_missing=True),
}

BANK = KnownTable(
    key="bank",
    name="Bank Marketing",
    files=(KnownFile("bank-full.csv", 4_610_348, "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d"),),
    rows=45_211,
    train_rows=None,
    classes=("no", "yes"),
    openml=1461,
    columns=_BANK_COLUMNS,
    label="y",
    openml_columns={name: f"V{place}" for place, name in enumerate(_BANK_COLUMNS, start=1)},
    openml_classes={"1": "no", "2": "yes"},
)

ADULT = KnownTable(
    key="adult",
    name="Adult",
    files=(
        KnownFile("adult.data", 3_974_305, "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        KnownFile("adult.test", 2_003_153, "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    ),
    rows=48_842,
    train_rows=32_561,
    classes=("<=50K", ">50K"),
    openml=1590,
    columns=_ADULT_COLUMNS,
    label="income",
    openml_columns={name: name for name in _ADULT_COLUMNS} | {"gender": "sex"},
    openml_classes={"<=50K": "<=50K", ">50K": ">50K"},
)

EMNIST = KnownImages(
    key="emnist",
    name="EMNIST, 47 classes, own split",
    files=(KnownFile("emnist47.npz", 29_107_629, "5ae0142dbd11c183a305273cd2fe57af16045c02c94d23f6184b2f164898423e"),),
    rows=114_585,
    train_rows=95_785,
    classes=tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt"),
    openml=41039,
    openml_name="EMNIST balanced",
    openml_rows=131_600,
    upright_by="7",
)

_DEBIAN = "/usr/share/datasets/fashion-mnist"

FASHION_MNIST = KnownImages(
    key="fashion-mnist",
    name="Fashion-MNIST",
    files=tuple(
        KnownFile(name, size, digest, _DEBIAN)
        for name, size, digest in (
            (
                "train-images-idx3-ubyte.gz",
                26_421_856,
                "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
            ),
            ("train-labels-idx1-ubyte.gz", 29_491, "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056"),
            (
                "t10k-images-idx3-ubyte.gz",
                4_422_079,
                "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
            ),
            ("t10k-labels-idx1-ubyte.gz", 5_125, "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05"),
        )
    ),
    rows=70_000,
    train_rows=60_000,
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    openml=40996,
    openml_name="Fashion-MNIST",
    openml_rows=70_000,
)

KNOWN: dict[str, KnownTable | KnownImages] = {one.key: one for one in (BANK, ADULT, EMNIST, FASHION_MNIST)}
"""By what commands call them."""
