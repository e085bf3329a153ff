"""Curves of runs as a picture. Needs matplotlib, from the extra `plots`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vfedsec.errors import ConfigError
from vfedsec.experiments.history import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = (
    ("#0072B2", "-", "o"),
    ("#D55E00", "--", "s"),
    ("#009E73", "-.", "^"),
    ("#555555", ":", "D"),
)
"""Colour (Okabe and Ito's, safe for the colour-blind), dashes and marks, so that print in grey can be read too."""


@dataclass(frozen=True)
class Curve:
    """One run in the picture."""

    label: str
    points: Sequence[Point]


def check_plots(path: Path | None = None) -> None:
    """Raises `ConfigError` unless pictures can be drawn, of the kind that the file's name ends in."""
    try:
        import matplotlib  # noqa: F401
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise ConfigError("expected matplotlib to draw with, found none: pip install matplotlib") from None
    kinds = sorted(FigureCanvasAgg.get_supported_filetypes())
    if path is not None and path.suffix.lstrip(".").lower() not in kinds:
        found = path.suffix or "none"
        raise ConfigError(f"expected a name that ends in one of {', '.join(kinds)}, found {found}", file=str(path))


def can_plot() -> bool:
    """Whether pictures can be drawn."""
    try:
        check_plots()
    except ConfigError:
        return False
    return True


def draw_curves(path: Path, curves: Sequence[Curve], metric: str, metric_label: str, title: str) -> None:
    """Draw a metric against training rounds attempted, one line a run, as a PNG (or what the file name ends in).

    Raises `ConfigError` without matplotlib, or when the file cannot be written.
    """
    check_plots(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve, looks in zip(curves, itertools.cycle(_LOOKS)):
        _draw(axes, curve, metric, looks)
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("training rounds attempted")
    axes.set_ylabel(f"{metric_label} on held-out rows")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ConfigError(f"expected a picture that can be written, found: {error.strerror}", file=str(path)) from None


def _draw(axes: Axes, curve: Curve, metric: str, looks: tuple[str, str, str]) -> None:
    # After the last round there are two evaluations, and the test comes last: it is the one that is told.
    points = {
        one.rounds: one.metrics[metric] for one in curve.points if not math.isnan(one.metrics.get(metric, math.nan))
    }
    rounds, values = list(points), list(points.values())
    final = f" ({values[-1]:.3f})" if values else ""
    colour, dashes, mark = looks
    label = curve.label + final
    axes.plot(rounds, values, dashes, color=colour, marker=mark, markersize=4, linewidth=1.6, label=label)
