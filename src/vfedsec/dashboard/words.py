"""How numbers and names are written where people read them."""

from __future__ import annotations

import math

_ABBREVIATIONS = {"auc": "AUC", "rmse": "RMSE", "r2": "R²"}
_UNITS = ("B", "kB", "MB", "GB", "TB")


def metric_name(name: str) -> str:
    """`average_precision` as people write it."""
    return " ".join(_ABBREVIATIONS.get(word, word) for word in name.split("_"))


def metric_text(value: float) -> str:
    """Four digits behind the point, or a dash where the rows do not define it."""
    return "-" if math.isnan(value) else f"{value:.4f}"


def share_text(share: float) -> str:
    """A fraction in per cent; what is there does not read as nothing."""
    return "< 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def bytes_text(count: float) -> str:
    """Three digits and a unit: 1 kB is 1000 B."""
    for unit in _UNITS:
        if count < 999.5 or unit == _UNITS[-1]:
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"


def seconds_text(seconds: float) -> str:
    """Tenths below a minute, then minutes and seconds."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
