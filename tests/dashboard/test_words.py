"""Numbers and names as people read them."""

from __future__ import annotations

import pytest

from vfedsec.dashboard.words import bytes_text, metric_name, metric_text, seconds_text, share_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_999, "1.0 MB"),
        (123_456_789, "123 MB"),
        (2e15, "2000 TB"),
    ],
)
def test_bytes_have_three_digits_and_a_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0 %"), (1e-9, "< 1 %"), (0.0099, "< 1 %"), (0.01, "1 %"), (0.254, "25 %"), (1, "100 %")]
)
def test_a_small_share_does_not_read_as_nothing(share: float, text: str) -> None:
    assert share_text(share) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (61, "1 min 01 s")]
)
def test_seconds_become_minutes(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("name", "text"), [("auc", "AUC"), ("macro_auc", "macro AUC"), ("log_loss", "log loss"), ("r2", "R²")]
)
def test_metrics_are_named_as_people_write_them(name: str, text: str) -> None:
    assert metric_name(name) == text


def test_a_metric_that_is_not_defined_is_a_dash() -> None:
    assert (metric_text(float("nan")), metric_text(0.12345)) == ("-", "0.1235")
