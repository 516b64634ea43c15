"""The line that tells how far long work has come."""

import io

import pytest

from tuplet.core import progress
from tuplet.core.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_terminal_sees_one_line_redrawn(clock):
    stream = Terminal()
    with Progress("Fitting", 4, stream=stream) as bar:
        for k in range(4):
            clock[0] += 30
            bar.advance(f"model {k}")
    states = stream.getvalue().split("\r")
    assert [state.count("━") for state in states[1:-1]] == [6, 12, 18, 24]
    assert "1/4  1 min 30 s left  model 0" in states[1]
    assert states[-1].startswith("Fitting  4/4 in 2 min")
    assert stream.getvalue().count("\n") == 1


def test_a_long_note_does_not_wrap_the_line(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with Progress("Fitting", 2, stream=stream) as bar:
        clock[0] += 1
        bar.advance("x" * 200)
    assert all(len(state.removesuffix("\x1b[K")) < 40 for state in stream.getvalue().split("\r")[:2])


def test_a_log_gets_a_line_now_and_then(clock):
    stream = io.StringIO()
    with Progress("Fitting", 100, show=True, stream=stream) as bar:
        for _ in range(100):
            clock[0] += 1
            bar.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[0] == "Fitting  10/100  1 min 30 s left"


def test_nobody_watches_nobody_is_told():
    stream = io.StringIO()
    with Progress("Fitting", 1, stream=stream) as bar:
        bar.advance()
    assert not stream.getvalue()


def test_work_that_stops_early_says_so():
    stream = io.StringIO()
    with Progress("Fitting", 3, show=True, stream=stream) as bar:
        bar.advance()
    assert stream.getvalue() == "Fitting  1/3 in 0 s, stopped\n"


def test_the_end_is_logged_even_where_nothing_is_shown(clock, caplog):
    with caplog.at_level("INFO", logger="tuplet"), Progress("Fitting", 2, show=False) as bar:
        clock[0] += 3
        bar.advance("one")
        bar.advance("two")
    assert [record.getMessage() for record in caplog.records] == ["Fitting: 2 of 2 in 3.0 s"]
