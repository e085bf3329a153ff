"""Made-up customers of a bank, two telephone companies and a retailer, and the table each keeps.

Everybody has a few hidden traits. Each organisation sees mostly one of them, through columns that
are noisy and have gaps. Whether a customer defaults depends on all the traits, and on some of them
together: every organisation can tell a part, and only all of them the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
Cells = list[str]
Columns = dict[str, Cells]

_OUTSIDERS = 0.35
_IN_A_TELCO_REGION = 0.45
_AT_THE_RETAILER = 0.85
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


@dataclass(frozen=True)
class People:
    """Everybody, in one order: the bank's customers first, then those of the others alone."""

    ids: Cells
    bank_customers: int
    thrift: Numbers
    """How well money is kept; the bank sees it best."""
    strain: Numbers
    """Bills come late; the telephone companies see it best."""
    impulse: Numbers
    """Bought in haste; the retailer sees it best."""
    age: Numbers
    """Years; it shows a little in every table."""

    def __len__(self) -> int:
        return len(self.ids)


def make_people(rng: np.random.Generator, customers: int) -> People:
    """The bank's customers and, for the others, some who are not."""
    count = customers + round(customers * _OUTSIDERS)
    shared = rng.normal(size=count)
    thrift, strain, impulse = (
        0.35 * sign * shared + np.sqrt(1 - 0.35**2) * rng.normal(size=count) for sign in (-1, 1, 1)
    )
    age = np.clip(18 + rng.gamma(3.2, 8.5, size=count), 18, 92)
    return People(_ids(rng, count), customers, thrift, strain, impulse, age)


def defaults(rng: np.random.Generator, people: People) -> Cells:
    """Who of the bank's customers does not pay back, 0 or 1; about one in six."""
    thrift, strain, impulse, age = (
        trait[: people.bank_customers] for trait in (people.thrift, people.strain, people.impulse, people.age)
    )
    both = np.maximum(strain, 0) * np.maximum(impulse, 0)
    cushioned = np.maximum(thrift, 0) * np.maximum(strain, 0)
    unsettled = np.abs(age - 45) / 20
    score = -1.45 * thrift + 0.95 * strain + 0.7 * impulse
    score += 3.2 * both - 1.5 * cushioned + 0.7 * unsettled
    chance = 1 / (1 + np.exp(-(1.3 * score - 4.4)))
    return _flags(rng.random(len(chance)) < chance, "1", "0")


def bank_members(rng: np.random.Generator, people: People) -> Indices:
    """The bank's rows, in its own order."""
    return rng.permutation(people.bank_customers)


def telco_members(rng: np.random.Generator, people: People) -> tuple[Indices, Indices]:
    """Rows of the north and of the south: nobody is in both, and some are in neither."""
    region = rng.random(len(people))
    north = np.flatnonzero(region < _IN_A_TELCO_REGION)
    south = np.flatnonzero(region >= 1 - _IN_A_TELCO_REGION)
    return rng.permutation(north), rng.permutation(south)


def retailer_members(rng: np.random.Generator, people: People) -> Indices:
    """The retailer's rows, in its own order."""
    return rng.permutation(np.flatnonzero(rng.random(len(people)) < _AT_THE_RETAILER))


def bank_columns(rng: np.random.Generator, people: People, members: Indices) -> Columns:
    """What the bank knows of its customers."""
    thrift, age = people.thrift[members], people.age[members]
    working = np.clip(1.2 - np.abs(age - 45) / 40, 0.2, 1.2)
    income = np.exp(10.2 + 0.35 * working + 0.16 * thrift + _noise(rng, thrift, 0.35))
    balance = np.sinh(1.1 * thrift + 0.6 + _noise(rng, thrift, 0.45)) * 1900
    months = np.clip((age - 17) * 12 * rng.beta(1.4, 2.2, size=len(age)), 1, None)
    employment = _choice(
        rng,
        {
            "employed": 1.6 + 0.3 * thrift,
            "self-employed": 0.2 - 0.1 * thrift,
            "student": np.where(age < 28, 1.2, -3.0),
            "retired": np.where(age > 63, 3.6, -4.0),
            "unemployed": -0.9 - 0.6 * thrift,
        },
    )
    housing = _choice(rng, {"rent": 0.6 - 0.4 * thrift, "own": 0.03 * (age - 40) + 0.3 * thrift, "family": -0.9})
    card = rng.random(len(age)) < 1 / (1 + np.exp(-0.4 - 0.4 * thrift))
    return {
        "age": _whole(age),
        "income": _gaps(rng, _whole(income), 0.06),
        "account_age_months": _whole(months),
        "balance": _decimals(balance, 2),
        "employment": _gaps(rng, employment, 0.03),
        "housing": housing,
        "has_credit_card": _flags(card, "yes", "no"),
    }


def telco_columns(rng: np.random.Generator, people: People, members: Indices, *, south: bool) -> Columns:
    """What a telephone company knows; the two regions differ in level and in a category each."""
    strain, age = people.strain[members], people.age[members]
    late = rng.poisson(np.exp(0.3 + 0.75 * strain + (0.15 if south else 0.0)))
    unpaid = np.exp(2.6 + 0.55 * strain + _noise(rng, strain, 0.4))
    months = np.clip(26 - 9 * strain - 4 * south + _noise(rng, strain, 8), 0, 96)
    minutes = rng.gamma(2.5, 90 if south else 120, size=len(age)) * np.clip(1.3 - age / 150, 0.4, 2)
    data = np.exp(2.4 - 0.02 * (age - 40) + 0.2 * south + _noise(rng, age, 0.6))
    regional = {"student-sim": np.where(age < 30, 0.7, -4.0)} if south else {"fibre-bundle": -0.4}
    plan = _choice(
        rng,
        {
            "prepaid": -0.2 + 0.6 * strain + 0.5 * south,
            "basic": 0.4,
            "unlimited": 0.1 - 0.4 * strain,
            **regional,
        },
    )
    roaming = rng.random(len(age)) < (0.42 if south else 0.27)
    gap = "NA" if south else ""
    return {
        "plan": plan,
        "monthly_minutes": _gaps(rng, _whole(minutes), 0.03, gap),
        "data_gb": _gaps(rng, _decimals(data, 1), 0.08, gap),
        "late_payments": _whole(late),
        "open_bills": _decimals(unpaid, 2),
        "contract_months": _gaps(rng, _whole(months), 0.05, gap),
        "roaming": _flags(roaming, "yes", "no"),
    }


def retailer_columns(rng: np.random.Generator, people: People, members: Indices) -> Columns:
    """What the retailer knows of the holders of its card."""
    impulse, age = people.impulse[members], people.age[members]
    purchases = np.exp(1.0 + 0.3 * impulse + _noise(rng, impulse, 0.35))
    basket = np.exp(3.6 - 0.2 * impulse + 0.004 * age + _noise(rng, impulse, 0.4))
    returns = 1 / (1 + np.exp(2.2 - 0.75 * impulse + _noise(rng, impulse, 0.45)))
    instalments = 1 / (1 + np.exp(1.2 - 0.9 * impulse + _noise(rng, impulse, 0.6)))
    favourite = _choice(
        rng,
        {
            "groceries": 0.7 - 0.4 * impulse,
            "electronics": 0.1 + 0.4 * impulse,
            "fashion": 0.2 + 0.3 * impulse - 0.01 * (age - 40),
            "garden": 0.02 * (age - 50) - 0.2 * impulse,
            "toys": -0.6,
        },
    )
    tier = _choice(rng, {"none": 0.5, "silver": 0.0, "gold": -1.0 - 0.4 * impulse})
    return {
        "purchases_per_month": _decimals(purchases, 1),
        "basket_value": _decimals(basket, 2),
        "returns_ratio": _gaps(rng, _decimals(returns, 3), 0.09),
        "instalment_share": _gaps(rng, _decimals(instalments, 3), 0.04),
        "favourite_category": _gaps(rng, favourite, 0.05),
        "loyalty_tier": tier,
    }


def pick(cells: Sequence[str], members: Indices) -> Cells:
    """The cells of some rows, in their order."""
    return [cells[index] for index in members.tolist()]


def _ids(rng: np.random.Generator, count: int) -> Cells:
    numbers = rng.choice(1_000_000, size=count, replace=False).tolist()
    letters = rng.integers(len(_LETTERS), size=(count, 2)).tolist()
    return [
        f"C-{number:06d}-{_LETTERS[first]}{_LETTERS[second]}"
        for number, (first, second) in zip(numbers, letters, strict=True)
    ]


def _noise(rng: np.random.Generator, like: Numbers, scale: float) -> Numbers:
    return rng.normal(scale=scale, size=len(like))


def _choice(rng: np.random.Generator, utilities: dict[str, float | Numbers]) -> Cells:
    """One name a row: the one with the highest utility after Gumbel noise, so a soft-max choice."""
    names = list(utilities)
    levels = np.stack(np.broadcast_arrays(*utilities.values()))
    chosen = (levels + rng.gumbel(size=levels.shape)).argmax(axis=0)
    return [names[index] for index in chosen.tolist()]


def _gaps(rng: np.random.Generator, cells: Cells, share: float, gap: str = "") -> Cells:
    missing = (rng.random(len(cells)) < share).tolist()
    return [gap if gone else cell for cell, gone in zip(cells, missing, strict=True)]


def _flags(values: NDArray[np.bool_], yes: str, no: str) -> Cells:
    return [yes if value else no for value in values.tolist()]


def _whole(values: Numbers | Indices) -> Cells:
    return [str(value) for value in np.rint(values).astype(np.int64).tolist()]


def _decimals(values: Numbers, places: int) -> Cells:
    return [f"{value:.{places}f}" for value in values.tolist()]
