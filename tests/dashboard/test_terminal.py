"""What people see of a run, in a terminal and in a file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from federation import job_of, rows_of
from vfedsec.dashboard.terminal import RunView
from vfedsec.engines.simulation import Options, Simulation
from vfedsec.trace import Aligning, Evaluated, RoundEnded, RunStarted, Warned


class Screen:
    """A console in memory, and a clock that stands until it is moved."""

    def __init__(self, *, terminal: bool, width: int = 80) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=terminal, width=width, height=20, color_system=None, highlight=False
        )
        self.now = 0.0
        self.view = RunView(self.console, lambda: self.now)

    @property
    def text(self) -> str:
        return self.file.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def shown(self) -> str:
        """What the live part of a terminal shows now."""
        console = Console(file=io.StringIO(), width=self.console.width, color_system=None)
        console.print(self.view._render())
        text = console.file.getvalue()  # type: ignore[attr-defined]
        return str(text)


def some_rounds(view: RunView, count: int = 10, planned: int = 40) -> None:
    view(RunStarted("test", "secure", 5, planned))
    for number in range(count):
        missing = ("b0",) if number == 3 else ()
        view(RoundEnded(number, "train", 0, "padded" if missing else "trained", 0.5, 1, missing))
    view(Evaluated(count, count, "validation", {"auc": 0.75}))


def test_a_file_gets_a_line_an_evaluation() -> None:
    screen = Screen(terminal=False)
    with screen.view as view:
        view.watch(job_of(), "federated")
        screen.now = 2.0
        some_rounds(view)
    assert screen.lines == [
        "federated  round 10/40  loss 0.500  AUC 0.7500  5 rounds/s  1 padded",
        "federated: AUC 0.7500, 10 rounds in 2.0 s, 1 padded",
    ]


def test_a_file_gets_no_control_characters() -> None:
    screen = Screen(terminal=False)
    with screen.view as view:
        view.say("reading")
        view.watch(job_of())
        some_rounds(view)
    assert "\x1b" not in screen.text


def test_a_long_line_in_a_file_is_not_broken() -> None:
    screen = Screen(terminal=False, width=30)
    with screen.view as view:
        view.watch(job_of(), "federated, pad")
        some_rounds(view)
    assert len(screen.lines) == 2


def test_the_stages_of_a_preparation_are_told() -> None:
    screen = Screen(terminal=False)
    job = job_of((2, 1), rounds=4)
    with screen.view as view:
        simulation = Simulation.from_prepared(job, rows_of(job), Options(sink=view, tap=view.tap))
        view.say("greeting the parties")
        simulation.prepare()
        view.watch(job)
        simulation.train()
    assert screen.lines[:3] == [
        "greeting the parties ...",
        "aligning rows and encoding columns ...",
        "building the models ...",
    ]
    assert screen.lines[3].startswith("training  round 4/4")


def test_a_stage_that_goes_on_is_told_once() -> None:
    screen = Screen(terminal=False)
    with screen.view as view:
        view.say("reading")
        view.say("reading")
    assert screen.lines == ["reading ..."]


def test_a_greeting_between_rounds_is_no_stage() -> None:
    screen = Screen(terminal=False)
    job = job_of((1, 1), rounds=30, drop=0.9, policy="discard")
    with screen.view as view:
        simulation = Simulation.from_prepared(job, rows_of(job), Options(sink=view, tap=view.tap))
        view.watch(job)
        simulation.train()
    assert all(line.startswith("training") for line in screen.lines)


def test_a_terminal_shows_the_stage_and_how_long_it_takes() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.say("aligning")
        screen.now = 3.2
        assert screen.shown().startswith("aligning ... 3 s")
        view.say("building")
        screen.now = 3.3
    assert "aligning: 3.2 s" in screen.text
    assert "building: " not in screen.text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_shows_three_lines_whatever_its_width(width: int) -> None:
    screen = Screen(terminal=True, width=width)
    with screen.view as view:
        view.watch(job_of((3, 2, 1)), "federated, discard")
        some_rounds(view)
        lines = screen.shown().splitlines()
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)


def test_a_terminal_shows_rounds_loss_metric_rate_and_parties() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.watch(job_of((2, 1)), "federated")
        screen.now = 2.0
        some_rounds(view)
        bar, numbers, parties = screen.shown().splitlines()
    assert bar.startswith("federated ") and bar.rstrip().endswith("10/40")
    assert numbers.split("   ") == ["loss 0.500", "AUC 0.7500", "5 rounds/s", "1 padded"]
    assert parties.split("   ") == ["answered lately:", "a0 100 %", "a1 100 %", "b0 90 %"]


def test_a_party_that_stays_away_is_called_so() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.watch(job_of((2, 1)))
        for number in range(5):
            view(RoundEnded(number, "train", 0, "padded", 0.5, 1, away=("a1",)))
        assert "a1 away" in screen.shown()


def test_who_missed_the_last_round_is_named_until_the_next() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.watch(job_of((2, 1)))
        for _ in range(4):
            view(RoundEnded(0, "train", 0, "trained", 0.5, 1))
        view(RoundEnded(4, "train", 0, "padded", 0.5, 1, missing=("b0",), away=("a1",)))
        parties = screen.shown().splitlines()[-1]
        assert parties.split("   ") == ["answered lately:", "a0 100 %", "a1 missing", "b0 missing"]
        view(RoundEnded(5, "train", 0, "trained", 0.5, 1))
        assert "missing" not in screen.shown()


def test_of_many_parties_only_those_with_gaps_are_named() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.watch(job_of((10, 2)))
        view(RoundEnded(0, "train", 0, "padded", 0.5, 1, missing=("b1",)))
        view(RoundEnded(1, "train", 0, "trained", 0.5, 1))
        parties = screen.shown().splitlines()[-1]
    assert parties.split("   ") == ["answered lately:", "b1 50 %", "11 others 100 %"]


def test_the_end_of_the_rounds_leaves_a_line_in_a_terminal() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.watch(job_of(), "federated")
        screen.now = 2.0
        some_rounds(view)
    assert "federated: AUC 0.7500, 10 rounds in 2.0 s, 1 padded" in screen.text


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_fails_leaves_no_line_about_its_end(terminal: bool) -> None:
    screen = Screen(terminal=terminal)
    with pytest.raises(RuntimeError), screen.view as view:
        view.watch(job_of(), "federated")
        some_rounds(view)
        raise RuntimeError
    assert "federated: " not in screen.text


def test_events_that_nobody_watches_are_let_go() -> None:
    screen = Screen(terminal=False)
    with screen.view as view:
        some_rounds(view)
    assert screen.text == ""


def test_the_planned_rounds_are_known_when_the_run_was_prepared_before() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view(RunStarted("test", "secure", 5, 50))
        view.watch(job_of())
        assert screen.shown().splitlines()[0].rstrip().endswith("0/50")


ALIGNING = "aligning rows and encoding columns"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_terminal_shows_how_far_the_alignment_is(width: int) -> None:
    screen = Screen(terminal=True, width=width)
    with screen.view as view:
        view.say(ALIGNING)
        assert screen.shown().rstrip() == f"{ALIGNING} ... 0 s"
        screen.now = 3.0
        view(Aligning("active", 0, 4000))
        view(Aligning("a0", 0, 4000))
        view(Aligning("active", 1000, 4000))
        (line,) = screen.shown().splitlines()
        assert line.startswith(f"{ALIGNING} ")
        assert line.rstrip().endswith("12 %  3 s")
        assert len(line) <= width
        view(Aligning("active", 4000, 4000))
        view(Aligning("a0", 4000, 4000))
        assert screen.shown().rstrip() == f"{ALIGNING} ... 3 s"
    assert f"{ALIGNING}: 3.0 s" in screen.text


def test_a_party_that_boasts_makes_no_bar_longer_than_it_is() -> None:
    screen = Screen(terminal=True)
    with screen.view as view:
        view.say(ALIGNING)
        view(Aligning("active", 2**62, 1000))
        view(Aligning("a0", 0, 1000))
        assert "50 %" in screen.shown()


def test_a_file_is_told_of_a_long_alignment_now_and_then() -> None:
    screen = Screen(terminal=False)
    with screen.view as view:
        view.say(ALIGNING)
        for second in range(25):
            screen.now = float(second)
            view(Aligning("active", second, 100))
    assert screen.lines == [f"{ALIGNING} ...", f"{ALIGNING} ... 10 %", f"{ALIGNING} ... 20 %"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_warning_stays(terminal: bool) -> None:
    screen = Screen(terminal=terminal)
    with screen.view as view:
        view.say(ALIGNING)
        view(Warned("shop", "what shop remembered is damaged"))
    assert "warning: what shop remembered is damaged" in screen.text
