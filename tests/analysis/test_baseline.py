"""A test compared with an earlier one, through the earlier one's report, as a user does it."""

import json
from xml.etree import ElementTree as ET

import pytest

from harness.analysis.baseline import regression
from harness.cli import main
from harness.cli.look.rebuilding import rebuild
from harness.model.baseline import Baseline, differences
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.store.baselines import find_baseline, keep_baseline
from tests.support.timelines import burst


@pytest.fixture(scope="module")
def former(tmp_path_factory):
    """A reported run."""
    folder = burst(200).write(tmp_path_factory.mktemp("former"))
    rebuild(folder)
    return folder


@pytest.fixture(scope="module")
def base(former):
    return find_baseline(former.path)[0]


def test_an_equal_test_is_no_regression_and_a_slower_one_is(base, tmp_path):
    assert regression(base, burst(200, step=3.05).timeline(tmp_path / "b")).reasons == ()
    slow = regression(base, burst(200, step=4.5).timeline(tmp_path / "c"))
    assert len(slow.reasons) == 1
    assert "higher than baseline" in slow.reasons[0]


def test_a_faster_test_is_no_regression(tmp_path):
    slow = burst(200, step=4.5).write(tmp_path / "slow")
    rebuild(slow)
    assert regression(find_baseline(slow.path)[0], burst(200).timeline(tmp_path / "d")).reasons == ()


def test_more_failures_are_a_regression(base, tmp_path):
    found = regression(base, burst(200, store_full_from=0.9).timeline(tmp_path / "b"))
    assert found.failed[1] == pytest.approx(0.1, abs=0.01)
    assert any("failed_ratio" in reason for reason in found.reasons)


def test_with_too_few_successes_durations_are_not_judged(base, tmp_path):
    found = regression(base, burst(200, store_full_from=0.2).timeline(tmp_path / "b"))
    assert found.comparison is None
    assert "failed_ratio" in found.sentence


def test_differences_are_settings_not_results_of_a_closed_test():
    a = Plan("kfp", "", {"name": "burst"}, 200, 7, simulated=False, digests={"pipeline": "x", "schedule": "1"})
    b = Plan("kfp", "", {"name": "burst"}, 100, 7, simulated=False, digests={"pipeline": "y", "schedule": "2"})
    assert differences(a, b) == ("runs: 200 and 100", "pipeline: x and y")
    assert differences(a, a) == ()
    closed = [Plan("kfp", "", {"model": "closed"}, runs, 7, simulated=False) for runs in (90, 110)]
    assert differences(*closed) == ()
    replayed = Plan("kfp", "", {"name": "replay"}, 200, 7, simulated=False, digests={"pipeline": "x", "schedule": "1"})
    assert differences(a, replayed) == ()


def test_every_format_shows_the_baseline_and_a_regression_exits_with_3(former, tmp_path, capsys):
    folder = burst(200, step=4.5).write(tmp_path)
    assert main(["report", str(folder.path), "--baseline", str(former.path)]) == 3
    assert "WORSE" in capsys.readouterr().out
    told = json.loads((folder.path / "report.json").read_text())["baseline"]
    assert told["worse"]
    assert told["duration_change"] > 0.1
    assert told["interval"][0] > 0.1
    for name in ("report.html", "report.md"):
        assert told["name"] in (folder.path / name).read_text(), name
    (case,) = ET.parse(folder.path / "junit.xml").getroot().findall(".//testcase[failure]")
    assert case.get("name") == f"baseline {told['name']}"


def test_the_report_is_reproducible_without_the_original_baseline(former, tmp_path, capsys):
    folder = burst(200).write(tmp_path)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes((former.path / "report.json").read_bytes())
    assert main(["report", str(folder.path), "--baseline", str(elsewhere)]) == 0
    first = {name: (folder.path / name).read_bytes() for name in ("report.html", "report.json", "junit.xml")}
    elsewhere.unlink()
    assert main(["report", str(folder.path)]) == 0
    assert {name: (folder.path / name).read_bytes() for name in first} == first
    assert "no regression" in capsys.readouterr().out


def without(key):
    return lambda document: document.pop(key)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without("schema_version"), "is not a report of Pipeswarm"),
        (without("batches_s"), "older version"),
        (without("ledger"), "can't be read"),
        (lambda document: document["validity"].update(verdict="INVALID", reasons=["late"]), "INVALID: late"),
        (lambda document: document.update(batches_s=[None] * 20), "is too small"),
    ],
)
def test_an_unusable_baseline_is_rejected(former, spoil, said):
    document = json.loads((former.path / "report.json").read_text())
    spoil(document)
    with pytest.raises(ConfigError, match=said):
        Baseline.parse(document, "b")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_a_baseline_that_is_not_a_report_is_rejected(content, tmp_path):
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(ConfigError, match=r"the baseline .*b"):
        find_baseline(tmp_path / "b")


def test_a_baseline_without_a_report_hints_at_the_command(tmp_path):
    with pytest.raises(ConfigError, match=r"has no report\.json") as refused:
        find_baseline(burst(5).write(tmp_path).path)
    assert "pipeswarm report" in refused.value.hint


def test_a_baseline_of_another_load_is_rejected(former, tmp_path, capsys):
    folder = burst(100).write(tmp_path)
    assert main(["report", str(folder.path), "--baseline", str(former.path)]) == 2
    assert f"the baseline {former.path} is of another load: runs: 200 and 100" in capsys.readouterr().err
    assert not (folder.path / "baseline.json").exists()


def test_an_invalid_test_is_not_compared_with_the_baseline(former, tmp_path):
    story = burst(200, step=4.5)
    story.records = [record for record in story.records if getattr(record, "seq", None) != 3]
    folder = story.write(tmp_path)
    keep_baseline(folder, (former.path / "report.json").read_bytes())
    report = rebuild(folder)
    assert report.exit_code == 4
    cases = ET.parse(folder.path / "junit.xml").getroot().findall(".//testcase[skipped]")
    assert [case.get("name") for case in cases] == [f"baseline {report.regression.baseline}"]
