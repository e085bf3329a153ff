"""A folder with a whole federation in it: four tables, four party files and the job.

The files are such as users would write by hand. What the tables hold is made up in `demo_people`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from vfedsec.data.demo_people import (
    Cells,
    Columns,
    Indices,
    People,
    bank_columns,
    bank_members,
    defaults,
    make_people,
    pick,
    retailer_columns,
    retailer_members,
    telco_columns,
    telco_members,
)
from vfedsec.errors import DataError

FEWEST_CUSTOMERS, MOST_CUSTOMERS = 100, 500_000
"""Below, there is nothing to learn from; above, there are not enough customer numbers."""
MOST_EPOCHS = 10_000

_JOB = """\
# A bank wants to know which customers will not pay back. Two telephone companies and a retailer
# know things about the same people that it does not, and nobody hands out a table.

name = "demo"
seed = {seed}

# The bank holds the labels, so it is the active party.
[active]
party = "bank"
columns = [
    "age",
    "income",
    "account_age_months",
    "balance",
    "employment",
    "housing",
    "has_credit_card",
]

# The telephone companies keep the same columns about different people: one group, one model.
[[groups]]
name = "telco"
parties = ["telco_north", "telco_south"]
columns = [
    "plan",
    "monthly_minutes",
    "data_gb",
    "late_payments",
    "open_bills",
    "contract_months",
    "roaming",
]
width = 24

# The retailer is alone in its group.
[[groups]]
name = "retail"
parties = ["retailer"]
columns = [
    "purchases_per_month",
    "basket_value",
    "returns_ratio",
    "instalment_share",
    "favourite_category",
    "loyalty_tier",
]
width = 24

[task]
kind = "binary"

# Each group fills columns of its own, so the others can go on when one is missing.
[fusion]
kind = "concat"

[top.model]
name = "mlp"
options = {{ hidden = [32] }}

# Few and small steps: the run ends while the model still gains from every round, so that a lost round shows.
[training]
epochs = {epochs}
batch_size = 256
optimizer = "adam"
learning_rate = 0.00025
evaluate_every = 31

# One customer in five is kept for the last evaluation.
[split]
test = 0.2

# All of the bank's customers count, also those that nobody else knows.
[alignment]
join = "left"

# Words of 16 bits would halve what the masked embeddings take on the wire.
[security]
word_bits = {word_bits}

[dropout]
policy = "pad"

# For `vfedsec simulate`: three training rounds in ten lose a party.
[simulation]
drop_probability = 0.3

[parties]
bank = "bank.toml"
telco_north = "telco_north.toml"
telco_south = "telco_south.toml"
retailer = "retailer.toml"
"""

_PARTY = """\
# This file stays with {name}.

name = "{name}"

[data]
source = "{name}.csv"
id = "customer_id"
"""

_PARTIES = ("bank", "telco_north", "telco_south", "retailer")
_LABEL = 'label = "defaulted"\n'


def write_demo(
    folder: Path | str,
    seed: int = 7,
    customers: int = 20_000,
    *,
    epochs: int = 8,
    word_bits: Literal[16, 32] = 32,
) -> Path:
    """Write the demo into a folder, made if need be, and return its job file.

    The same numbers give the same bytes, so a demo that is there already is left as it is. Raises `DataError` when a
    number is out of range, when the folder cannot be written, or when a file of that name holds anything else: none is
    overwritten.
    """
    _check(seed, customers, epochs)
    files = {
        "job.toml": _JOB.format(seed=seed, epochs=epochs, word_bits=word_bits),
        **{f"{name}.toml": _party_file(name) for name in _PARTIES},
        **{f"{name}.csv": _csv(columns) for name, columns in _tables(seed, customers).items()},
    }
    place = Path(folder)
    try:
        _write_all(place, files)
    except OSError as error:
        raise DataError(f"expected a folder {place} that can be written, found: {error.strerror}") from None
    return place / "job.toml"


def _check(seed: int, customers: int, epochs: int) -> None:
    if not FEWEST_CUSTOMERS <= customers <= MOST_CUSTOMERS:
        expected = f"from {FEWEST_CUSTOMERS} to {MOST_CUSTOMERS} customers"
        raise DataError(f"expected a demo of {expected}, found {customers}")
    if not 0 <= seed < 2**63:
        raise DataError(f"expected a demo seed from 0 to {2**63 - 1}, found {seed}")
    if not 1 <= epochs <= MOST_EPOCHS:
        raise DataError(f"expected a demo of 1 to {MOST_EPOCHS} epochs, found {epochs}")


def _tables(seed: int, customers: int) -> dict[str, Columns]:
    """Every party's table by its name. A table's numbers come from a generator of its own."""
    who, outcome, bank, north, south, retailer = (np.random.default_rng([seed, purpose]) for purpose in range(6))
    people = make_people(who, customers)
    at_bank = bank_members(bank, people)
    in_north, in_south = telco_members(who, people)
    at_retailer = retailer_members(retailer, people)
    label = {"defaulted": pick(defaults(outcome, people), at_bank)}
    return {
        "bank": _table(people, at_bank, bank_columns(bank, people, at_bank) | label),
        "telco_north": _table(people, in_north, telco_columns(north, people, in_north, south=False)),
        "telco_south": _table(people, in_south, telco_columns(south, people, in_south, south=True)),
        "retailer": _table(people, at_retailer, retailer_columns(retailer, people, at_retailer)),
    }


def _table(people: People, members: Indices, columns: Columns) -> Columns:
    return {"customer_id": pick(people.ids, members)} | columns


def _csv(columns: Columns) -> str:
    rows: list[Cells] = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    return "".join(",".join(row) + "\n" for row in rows)


def _party_file(name: str) -> str:
    text = _PARTY.format(name=name)
    return text + _LABEL if name == "bank" else text


def _write_all(folder: Path, files: dict[str, str]) -> None:
    contents = {folder / name: text.encode() for name, text in files.items()}
    for path, content in contents.items():
        if path.exists() and not _holds(path, content):
            raise DataError(
                f"expected a folder without a {path.name}, found one in {folder} that this demo would not write: "
                "choose another folder, or the numbers that it was written with"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        if not path.exists():
            path.write_bytes(content)


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content
