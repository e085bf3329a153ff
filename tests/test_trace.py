"""Events in a file and in several ears."""

import pytest

from federation import job_of, trained
from vfedsec import trace

EVENTS = [
    trace.RunStarted("job", "secure", 10, 100),
    trace.Aligning("active", 500, 1000),
    trace.Warned("a0", "what it remembered is damaged"),
    trace.RoundEnded(1, "train", 0, "padded", 0.5, 2, ("a0",), ("b0",)),
    trace.RoundEnded(2, "test", 0, "evaluated", None, 1),
    trace.Evaluated(3, 2, "test", {"accuracy": 0.75}),
    trace.PartyLost(3, "a0", "no reply"),
    trace.PartyReturned(4, "a0"),
    trace.KeyRenewed(5, "b0"),
    trace.RunEnded("finished", 6),
]


def written(events, path):
    file = trace.TraceFile(path)
    for event in events:
        file(event)
    file.close()
    return path


def test_a_trace_comes_back_as_it_was(tmp_path):
    assert trace.read_trace(written(EVENTS, tmp_path / "trace.jsonl")) == EVENTS


def test_an_event_is_one_line_of_json(tmp_path):
    lines = written(EVENTS, tmp_path / "trace.jsonl").read_text().splitlines()
    assert len(lines) == len(EVENTS)
    assert lines[7] == '{"event":"PartyReturned","round_index":4,"party":"a0"}'


def test_a_new_trace_takes_the_place_of_an_old_one(tmp_path):
    path = written(EVENTS, tmp_path / "trace.jsonl")
    assert trace.read_trace(written(EVENTS[:2], path)) == EVENTS[:2]


def test_two_listeners_hear_the_same():
    one, two = [], []
    sink = trace.both(one.append, two.append)
    for event in EVENTS:
        sink(event)
    assert one == two == EVENTS
    assert trace.ignore(EVENTS[0]) is None


def test_a_whole_run_can_be_written_and_read(tmp_path):
    events = trained(job_of(rounds=5, drop=0.5)).events
    assert trace.read_trace(written(events, tmp_path / "trace.jsonl")) == events


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_events_are_frozen(event):
    with pytest.raises(AttributeError):
        setattr(event, event.__struct_fields__[0], "other")
