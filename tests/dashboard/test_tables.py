"""Tables after a run."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

from vfedsec.config.job import AGGREGATOR
from vfedsec.dashboard.tables import comparison_table, cost_table, metrics_table, phase_table
from vfedsec.engines.metering import Meter
from vfedsec.experiments.comparison import Comparison, Contestant


def lines(table: Table, width: int = 80) -> list[list[str]]:
    """The cells of each printed line, apart by two spaces or more."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def contestant(auc: float, used: int, moved: int) -> Contestant:
    return Contestant({"auc": auc}, 100, used, moved, 0, 1.0, ())


def test_every_party_has_its_cost_and_the_aggregator_the_other_side_of_the_bytes() -> None:
    meter = Meter()
    meter.add("bank", "train", sent=1000, received=5000, cpu=2.0, security=0.5, rounded=1000, clipped=1)
    meter.add("shop", "train", sent=3000, received=1000, cpu=1.0, rounded=1000)
    meter.add(AGGREGATOR, "train", cpu=0.25)
    rows = lines(cost_table(meter, ["bank", "shop"]))
    assert ["bank", "2.00 s", "25 %", "1.0 kB", "5.0 kB", "< 1 %"] in rows
    assert ["shop", "1.00 s", "-", "3.0 kB", "1.0 kB", "0 %"] in rows
    assert ["aggregator", "0.25 s", "-", "6.0 kB", "4.0 kB", "-"] in rows


def test_phases_add_up_all_parties_in_the_order_of_a_run() -> None:
    meter = Meter()
    meter.add("bank", "train", sent=1000, cpu=2.0, security=0.5)
    meter.add("shop", "update", received=500, cpu=3.0, security=0.5)
    meter.add("shop", "hello", sent=100, cpu=1.0)
    meter.add(AGGREGATOR, "train", cpu=0.25)
    rows = [row for row in lines(phase_table(meter, ["bank", "shop"])) if row]
    assert rows[-2:] == [
        ["setup", "1.00 s", "0 %", "0.00 s", "100 B"],
        ["training", "5.00 s", "20 %", "0.25 s", "1.5 kB"],
    ]


def test_metrics_are_listed() -> None:
    assert ["log loss", "0.2500"] in lines(metrics_table({"auc": 0.9, "log_loss": 0.25}))


def test_the_four_stand_side_by_side() -> None:
    comparison = Comparison(
        metric="auc",
        alone=contestant(0.7, 100, 0),
        pad=contestant(0.88, 98, 5_000_000),
        discard=contestant(0.87, 80, 4_000_000),
        pooled=contestant(0.9, 100, 0),
    )
    rows = lines(comparison_table(comparison, "bank"))
    assert rows[-4:] == [
        ["bank alone", "0.7000", "100 of 100", "-"],
        ["federated, pad", "0.8800", "98 of 100", "5.0 MB"],
        ["federated, discard", "0.8700", "80 of 100", "4.0 MB"],
        ["all columns pooled", "0.9000", "100 of 100", "-"],
    ]


def test_names_are_not_read_as_markup() -> None:
    meter = Meter()
    meter.add("[b]x[/b]", "train")
    assert any(row[0] == "[b]x[/b]" for row in lines(cost_table(meter, ["[b]x[/b]"])) if row)
