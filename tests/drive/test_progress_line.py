import io

from harness.drive.progress_line import Progress, line


class Terminal(io.StringIO):
    def isatty(self):
        return True


LIVE = {
    "stage": "draining", "intended": 200, "sent": 190, "in_flight": 90, "done": 80, "failed": 20, "rejected": 10,
    "missed": 0, "runs_per_min": 61.2, "lag_s": 0.0042, "eta_s": 75.0,
}  # fmt: skip


def test_the_line_says_how_the_test_stands():
    assert line(LIVE, {"ready_nodes": 7}, {}) == (
        "[█████████████···········] 110/200 · draining: sent 190 · in flight 90 · done 80 · failed 20 · rejected 10"
        " · 61 runs/min · lag 4.2 ms · nodes 7 · ETA 75 s"
    )


def test_runs_that_wait_for_their_answer_are_in_flight_and_the_first_finding_is_named():
    found = {"findings": [{"name": "store-full", "confidence": 0.95}, {"name": "oom", "confidence": 0.9}]}
    shown = line({**LIVE, "awaited": 8}, {}, found)
    assert "in flight 98" in shown
    assert shown.endswith("store-full (95% sure)")


def test_before_the_ledger_is_open_there_is_only_the_stage():
    assert line({"stage": "preparing"}, {}, {}) == "preparing …"


def test_a_terminal_is_redrawn_in_place():
    out = Terminal()
    progress = Progress(out)
    progress.show(LIVE, {}, {})
    progress.show({"stage": "over"}, {}, {})
    progress.done({"stage": "over"}, {})
    first, second = out.getvalue().split("\r")[1:]
    assert second.startswith("over …   ")
    assert len(second.rstrip("\n")) == len(first)
    assert out.getvalue().endswith("\n")


def test_without_a_terminal_lines_come_with_each_stage_and_seldom_otherwise():
    out = io.StringIO()
    progress = Progress(out)
    for _ in range(5):
        progress.show(LIVE, {}, {})
    progress.show({**LIVE, "stage": "reporting"}, {}, {})
    assert len(out.getvalue().splitlines()) == 2


def test_the_last_line_says_how_it_ended_however_soon_after_the_one_before():
    out = io.StringIO()
    progress = Progress(out)
    progress.show(LIVE, {}, {})
    progress.done({**LIVE, "done": 170, "in_flight": 0}, {})
    assert "200/200" in out.getvalue().splitlines()[-1]
