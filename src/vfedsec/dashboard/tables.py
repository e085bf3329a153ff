"""Tables after a run: who spent what, how good the model is, and how it compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich import box
from rich.table import Table
from rich.text import Text

from vfedsec.config.job import AGGREGATOR
from vfedsec.dashboard.words import bytes_text, metric_name, metric_text, share_text
from vfedsec.engines.metering import PHASES, Cost, Meter
from vfedsec.experiments.comparison import Comparison, Contestant, Name


def new_table(title: str, first: str, *others: str) -> Table:
    """An empty table: a name on the left, numbers on the right."""
    table = Table(
        title=title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def cost_table(meter: Meter, parties: Sequence[str]) -> Table:
    """What everybody spent in the whole run."""
    table = new_table("What it cost", "", "CPU", "of it security", "sent", "received", "clipped")
    costs = [meter.total(party) for party in parties]
    for party, cost in zip(parties, costs, strict=True):
        _add_cost(table, party, cost)
    hub = replace(
        meter.total(AGGREGATOR),
        bytes_sent=sum(cost.bytes_received for cost in costs),
        bytes_received=sum(cost.bytes_sent for cost in costs),
    )
    _add_cost(table, AGGREGATOR, hub)
    return table


def _add_cost(table: Table, name: str, cost: Cost) -> None:
    table.add_row(
        Text(name),
        f"{cost.cpu_seconds:.2f} s",
        share_text(cost.security_share) if cost.security_seconds else "-",
        bytes_text(cost.bytes_sent),
        bytes_text(cost.bytes_received),
        share_text(cost.clipped_share) if cost.values_rounded else "-",
    )


def phase_table(meter: Meter, parties: Sequence[str]) -> Table:
    """In which phase of the run all parties together spent it, and the aggregator's time beside it."""
    table = new_table("Where it went", "", "CPU of parties", "of it security", "CPU of aggregator", "moved")
    for phase in dict.fromkeys(PHASES.values()):
        total = Cost()
        for party in parties:
            total += meter.of_phase(party, phase)
        if total.exchanges:
            table.add_row(
                phase,
                f"{total.cpu_seconds:.2f} s",
                share_text(total.security_share),
                f"{meter.of_phase(AGGREGATOR, phase).cpu_seconds:.2f} s",
                bytes_text(total.bytes_sent + total.bytes_received),
            )
    return table


def metrics_table(metrics: Mapping[str, float]) -> Table:
    """The metrics of one evaluation."""
    table = new_table("On the test rows", "metric", "value")
    table.min_width = len("On the test rows")
    for name, value in metrics.items():
        table.add_row(metric_name(name), metric_text(value))
    return table


def names_of(active: str) -> dict[Name, str]:
    """What the four of a comparison are called."""
    return {
        "alone": f"{active} alone",
        "pad": "federated, pad",
        "discard": "federated, discard",
        "pooled": "all columns pooled",
    }


def comparison_table(comparison: Comparison, active: str) -> Table:
    """The four side by side."""
    table = new_table("What it brings", "trained by", metric_name(comparison.metric), "rounds used", "bytes moved")
    names = names_of(active)
    for name, one in comparison.contestants().items():
        style = "bold" if name == "pad" else ""
        table.add_row(names[name], *_cells(one, comparison.metric), style=style)
    return table


def _cells(one: Contestant, metric: str) -> tuple[str, str, str]:
    moved = bytes_text(one.bytes_moved) if one.bytes_moved else "-"
    return metric_text(one.metrics[metric]), f"{one.rounds_used} of {one.rounds}", moved
