import json
from dataclasses import replace

from harness.cli import main
from harness.cli.look.changes import changes
from reports.index import Entry

NIGHT = Entry("n", "0000-kfp-burst-100", 1, "VALID", "fine", 100, 0, 1000.0, 60.0, 4, 0)


def nights(*p95s):
    return [
        replace(NIGHT, folder=f"night-{k:02}", started_at=k, p95_s=p95_s + 0.1 * (k % 3))
        for k, p95_s in enumerate(p95s)
    ]


def test_the_night_and_the_metric_are_named():
    (found,) = changes(nights(*[60.0] * 10, *[80.0] * 5))
    assert (found.run, found.metric, found.worse, found.age) == ("night-10", "run duration p95 (s)", True, 5)
    assert found.sentence == "worse since night-10: run duration p95 (s) 60.1 → 80.1 (+33%) in kfp-burst-100"


def test_a_gain_is_better_and_a_tiny_change_is_none():
    (gain,) = changes(nights(*[80.0] * 10, *[60.0] * 5))
    assert not gain.worse
    assert changes(nights(*[60.0] * 10, *[61.0] * 5)) == []


def test_invalid_nights_and_other_loads_do_not_count():
    runs = nights(*[60.0] * 10, *[80.0] * 5)
    assert changes([*runs[:10], *(replace(run, verdict="INVALID") for run in runs[10:])]) == []
    assert changes([*runs[:10], *(replace(run, name="0000-kfp-burst-500") for run in runs[10:])]) == []


def test_the_exit_code_is_3_only_for_a_recent_change_for_the_worse(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("harness.cli.look.index.entries", lambda _: nights(*[60.0] * 10, *[80.0] * 8))
    assert main(["report", str(tmp_path), "--changes", "--recent", "8", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["changes"][0]["run"] == "night-10"
    assert main(["report", str(tmp_path), "--changes"]) == 0
