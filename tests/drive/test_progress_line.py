import io
from dataclasses import replace

import pytest

from harness.drive.session.status_reporter import Progress, line
from harness.model.live.state import Counts, LiveLoad


class Terminal(io.StringIO):
    def isatty(self):
        return True


COUNTS = Counts(200, accepted=190, rejected=10, done=80, failed=20)
LIVE = LiveLoad("draining", "burst", COUNTS, lag_p99_s=0.0042, succeeded_per_hour=3672.0, eta_s=75.0)


def test_the_line_shows_counts_throughput_lag_nodes_and_time_left():
    assert line(LIVE, {"ready_nodes": 7}, {}) == (
        "[█████████████···········] 110/200 · draining: sent 200 · in flight 90 · done 80 · failed 20 · rejected 10"
        " · 3,672 runs/h · lag p99 4.2 ms · nodes 7 · ETA 75 s"
    )


def test_unanswered_requests_are_in_flight_and_the_first_finding_is_named():
    found = {"findings": [{"name": "store-full", "confidence": 0.95}, {"name": "oom", "confidence": 0.9}]}
    shown = line(replace(LIVE, awaited=8), {}, found)
    assert "in flight 98" in shown
    assert shown.endswith("store-full (95% confidence)")


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (120, "[██████····] 110/200 · draining: sent 200 · in flight 90 · failed 20 · rejected 10 · lag p99 4.2 ms · nodes 7 · ETA 75 s"),
        (79, "[██████····] 110/200 · draining: sent 200 · failed 20 · rejected 10 · ETA 75 s"),
        (50, "[██████····] 110/200 · draining: sent 200"),
        (25, "[██████····] 110/200"),
        (9, "[██████··"),
    ],
)  # fmt: skip
def test_a_narrow_terminal_shows_what_matters_most_on_one_line(columns, shown):
    assert line(replace(LIVE, succeeded_per_hour=None), {"ready_nodes": 7}, {}, columns) == shown


@pytest.mark.parametrize(
    ("age_s", "in_flight", "shown"),
    [(None, 90, "done 80 ·"), (9.9, 90, "done 80 ·"), (50.2, 90, "done 80 (50 s ago) ·"), (50.2, 0, "done 80 ·")],
)
def test_counts_of_ended_runs_say_how_old_they_are_while_runs_are_in_flight(age_s, in_flight, shown):
    counts = replace(COUNTS, accepted=100 + in_flight)
    assert shown in line(replace(LIVE, counts=counts, ends_age_s=age_s), {}, {})


def test_missed_arrivals_are_no_progress():
    interrupted = LiveLoad("draining", "burst", Counts(200, accepted=50, done=30, missed=150))
    assert line(interrupted, {}, {}).startswith("[████····················] 30/200 ·")
    assert "missed 150" in line(interrupted, {}, {})


def test_a_terminal_gets_lines_of_its_width_and_one_that_cannot_redraw_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    Progress(out).show(LIVE, {"ready_nodes": 7}, {})
    assert out.getvalue().startswith("\r[")
    assert len(out.getvalue()) <= len("\r") + 59
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    progress = Progress(out)
    progress.show(LIVE, {}, {})
    progress.show(LIVE, {}, {})
    assert "\r" not in out.getvalue()
    assert len(out.getvalue().splitlines()) == 1


def test_before_the_ledger_is_open_there_is_only_the_stage():
    assert line(LiveLoad("preparing"), {}, {}) == "preparing …"


def test_a_terminal_is_redrawn_in_place(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    out = Terminal()
    progress = Progress(out)
    progress.show(LIVE, {}, {})
    progress.show(LiveLoad("over"), {}, {})
    progress.done(LiveLoad("over"), {})
    first, second = out.getvalue().split("\r")[1:]
    assert second.startswith("over …   ")
    assert len(second.rstrip("\n")) == len(first)
    assert out.getvalue().endswith("\n")


def test_without_a_terminal_a_line_is_printed_at_each_stage_and_seldom_otherwise():
    out = io.StringIO()
    progress = Progress(out)
    for _ in range(5):
        progress.show(LIVE, {}, {})
    progress.show(replace(LIVE, stage="reporting"), {}, {})
    assert len(out.getvalue().splitlines()) == 2


def test_the_final_state_is_printed_however_recent_the_last_line_is():
    out = io.StringIO()
    progress = Progress(out)
    progress.show(LIVE, {}, {})
    progress.done(replace(LIVE, counts=replace(COUNTS, done=170)), {})
    assert "200/200" in out.getvalue().splitlines()[-1]
