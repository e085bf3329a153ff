"""Rounds, smoothed enough to be read."""

from __future__ import annotations

import pytest

from federation import job_of
from vfedsec.dashboard.rounds import AWAY_ROUNDS, PRESENCE_ROUNDS, Progress
from vfedsec.trace import Evaluated, Outcome, RoundEnded, RunStarted


@pytest.fixture
def progress() -> Progress:
    return Progress(job_of((2, 1)), "training", 0, 100.0)


def round_ended(outcome: Outcome = "trained", loss: float | None = 0.5, **silent: tuple[str, ...]) -> RoundEnded:
    return RoundEnded(1, "train", 0, outcome, loss, 1, **silent)


def test_outcomes_are_counted(progress: Progress) -> None:
    for outcome in ("trained", "padded", "padded", "dropped"):
        progress.take(round_ended(outcome))
    assert (progress.rounds, progress.outcomes) == (4, {"trained": 1, "padded": 2, "dropped": 1})


def test_rounds_of_an_evaluation_are_not_training_rounds(progress: Progress) -> None:
    progress.take(RoundEnded(1, "validation", 0, "evaluated", None, 1, missing=("a0",)))
    assert progress.rounds == 0
    assert progress.presence()["a0"] == 1


def test_the_start_of_the_run_tells_how_many_are_planned(progress: Progress) -> None:
    progress.take(RunStarted("test", "secure", 5, 50))
    assert progress.planned == 50


def test_the_last_evaluation_counts(progress: Progress) -> None:
    for value in (0.6, 0.7):
        progress.take(Evaluated(1, 1, "validation", {"auc": value, "accuracy": 0.1}))
    assert progress.value == 0.7


def test_the_loss_is_smoothed_and_skips_dropped_rounds(progress: Progress) -> None:
    for loss in (1.0, None, 0.0):
        progress.take(round_ended(loss=loss))
    assert progress.loss == pytest.approx(0.9)


def test_a_party_that_missed_one_round_in_ten_answers_nine(progress: Progress) -> None:
    for number in range(20):
        progress.take(round_ended(missing=("a1",) if number % 10 == 5 else ()))
    assert progress.presence() == {"a0": 1, "a1": 0.9, "b0": 1}


def test_a_party_is_away_when_it_missed_the_last_rounds(progress: Progress) -> None:
    for _ in range(PRESENCE_ROUNDS):
        progress.take(round_ended())
    for number in range(AWAY_ROUNDS):
        assert progress.presence()["b0"] > 0
        progress.take(round_ended("padded", missing=("b0",)) if number == 0 else round_ended(away=("b0",)))
    assert progress.presence()["b0"] == 0
    progress.take(round_ended())
    assert progress.presence()["b0"] > 0.9


def test_rounds_long_past_are_forgotten(progress: Progress) -> None:
    progress.take(round_ended(missing=("a0",)))
    for _ in range(PRESENCE_ROUNDS):
        progress.take(round_ended())
    assert progress.presence()["a0"] == 1


def test_the_rate_is_rounds_a_second(progress: Progress) -> None:
    assert progress.rate(100.0) == 0
    for _ in range(10):
        progress.take(round_ended())
    assert (progress.rate(105.0), progress.seconds(105.0)) == (2, 5)
