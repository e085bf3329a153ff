"""A run as it goes, in a terminal: a bar, the numbers that matter, and who keeps dropping out.

`RunView` listens to the trace, so that it can stand beside any run. Where the output is no terminal it writes a line
an evaluation instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from vfedsec import trace
from vfedsec.config.job import Job
from vfedsec.dashboard.aligned import Aligned
from vfedsec.dashboard.rounds import Progress
from vfedsec.dashboard.words import metric_name, metric_text, seconds_text
from vfedsec.protocol.switchboard import Exchange

_STAGE_AFTER = {"hello": "aligning rows and encoding columns", "prepare": "building the models"}
"""What follows on the exchanges before the first round."""

_SHORT_STAGE = 0.5
"""Seconds; a stage that took less leaves no line behind."""

_QUIET = 10.0
"""Seconds; where the output is no terminal, an alignment is told of no more often."""

_REFRESHES_PER_SECOND = 8

_MOST_NAMED = 8
"""A federation of more parties is too long for a line."""


class RunView:
    """A trace sink, a tap for the exchanges before the first round, and a context manager.

    with RunView(console) as view:
        simulation = Simulation.from_files(path, Options(sink=view, tap=view.tap))
        view.say("greeting the parties")
        simulation.prepare()
        view.watch(simulation.job)
        simulation.train()
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._live: Live | None = None
        self._stage = ""
        self._stage_began = 0.0
        self._progress: Progress | None = None
        self._planned = 0
        self._aligning = Aligned()
        self.has_aligned = False
        """Whether rows were compared; otherwise the parties remember how theirs match."""
        self._told = 0.0

    def __enter__(self) -> RunView:
        if self._console.is_terminal:
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                refresh_per_second=_REFRESHES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._leave()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, stage: str) -> None:
        """What goes on while no rounds do."""
        if stage == self._stage and self._progress is None:
            return
        self._leave()
        self._stage, self._stage_began = stage, self._clock()
        self._aligning, self._told = Aligned(), self._stage_began
        if self._live is None:
            self._print(Text(f"{stage} ..."))
        else:
            self._live.refresh()

    def note(self, text: str, style: str = "") -> None:
        """A line that stays."""
        self._leave()
        self._print(Text(text, style=style))

    def watch(self, job: Job, title: str = "training") -> None:
        """The rounds that come next are of this job."""
        self._leave()
        self._progress = Progress(job, title, self._planned, self._clock())

    def tap(self, exchange: Exchange, party: str, request: bytes, reply: bytes | None) -> None:
        """For an engine: tells the stages of the preparation."""
        if self._progress is None and exchange.kind in _STAGE_AFTER:
            self.say(_STAGE_AFTER[exchange.kind])

    def __call__(self, event: trace.Event) -> None:
        """Take one event."""
        if isinstance(event, trace.RunStarted):
            self._planned = event.rounds_planned
        elif isinstance(event, trace.Warned):
            self._print(Text(f"warning: {event.message}", style="yellow"))
        elif isinstance(event, trace.Aligning):
            self._take_aligning(event)
        if self._progress is None:
            return
        self._progress.take(event)
        if self._live is None and isinstance(event, trace.Evaluated):
            self._print(_one_line(self._progress, self._clock()))

    def _take_aligning(self, event: trace.Aligning) -> None:
        self._aligning.take(event)
        self.has_aligned = True
        now = self._clock()
        if self._live is None and now - self._told >= _QUIET:
            self._told = now
            self._print(Text(f"{self._stage} ... {100 * self._aligning.share:.0f} %"))

    def _leave(self) -> None:
        """What is over leaves a line behind."""
        now = self._clock()
        if self._progress is not None and self._progress.rounds:
            self._print(_closing_line(self._progress, now))
        elif self._live is not None and self._stage and now - self._stage_began >= _SHORT_STAGE:
            self._print(Text(f"{self._stage}: {seconds_text(now - self._stage_began)}", style="dim"))
        self._progress, self._stage = None, ""

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=self._live is None)

    def _render(self) -> RenderableType:
        if self._progress is not None:
            return _rounds(self._progress, self._clock())
        if self._stage and self._aligning.share < 1:
            return _alignment(self._stage, self._aligning, self._clock() - self._stage_began)
        if self._stage:
            return Text(f"{self._stage} ... {self._clock() - self._stage_began:.0f} s")
        return Text()


def _alignment(stage: str, aligned: Aligned, seconds: float) -> RenderableType:
    bar = Table.grid(padding=(0, 1), expand=True)
    bar.add_column(no_wrap=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True, justify="right")
    drawn = ProgressBar(1.0, aligned.share, complete_style="cyan", finished_style="cyan")
    bar.add_row(Text(stage), drawn, Text(f"{100 * aligned.share:.0f} %  {seconds:.0f} s"))
    return bar


def _rounds(progress: Progress, now: float) -> RenderableType:
    bar = Table.grid(padding=(0, 1), expand=True)
    bar.add_column(no_wrap=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True, justify="right")
    drawn = ProgressBar(max(progress.planned, 1), progress.rounds, complete_style="cyan", finished_style="cyan")
    bar.add_row(Text(progress.title, style="bold"), drawn, _count(progress))
    return Group(bar, _line(_numbers(progress, now)), _line(_parties(progress)))


def _line(parts: list[Text]) -> Text:
    line = Text("   ").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _count(progress: Progress) -> Text:
    return Text(f"{progress.rounds}/{progress.planned}" if progress.planned else f"{progress.rounds}")


def _numbers(progress: Progress, now: float) -> list[Text]:
    parts = []
    if progress.loss is not None:
        parts.append(Text(f"loss {progress.loss:.3f}"))
    if progress.value is not None:
        parts.append(Text(f"{metric_name(progress.metric)} {metric_text(progress.value)}", style="bold"))
    parts.append(Text(f"{progress.rate(now):.0f} rounds/s"))
    return parts + [
        Text(f"{count} {outcome}", style="yellow")
        for outcome, count in progress.outcomes.items()
        if count and outcome != "trained"
    ]


def _parties(progress: Progress) -> list[Text]:
    """Who answers (where there are many, those who do not always), and who did not in the last round."""
    presence = progress.presence()
    named = {party: share for party, share in presence.items() if len(presence) <= _MOST_NAMED or share < 1}
    parts = [Text("answered lately:", style="dim")]
    parts += [_party(party, share, is_missing=party in progress.missing) for party, share in named.items()]
    if others := len(presence) - len(named):
        parts.append(Text(f"{others} others 100 %", style="green"))
    return parts


def _party(party: str, share: float, *, is_missing: bool) -> Text:
    if share == 0 or is_missing:
        return Text(f"{party} {'missing' if share else 'away'}", style="bold red")
    return Text(f"{party} {100 * share:.0f} %", style="green" if share > 0.99 else "yellow")


def _one_line(progress: Progress, now: float) -> Text:
    return Text("  ").join([Text(progress.title), Text("round ") + _count(progress), *_numbers(progress, now)])


def _closing_line(progress: Progress, now: float) -> Text:
    parts = [] if progress.value is None else [f"{metric_name(progress.metric)} {metric_text(progress.value)}"]
    parts.append(f"{progress.rounds} rounds in {seconds_text(progress.seconds(now))}")
    parts += [f"{count} {outcome}" for outcome, count in progress.outcomes.items() if count and outcome != "trained"]
    return Text(f"{progress.title}: {', '.join(parts)}")
