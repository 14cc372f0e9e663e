import html
import json
import re
import shutil
from datetime import datetime
from importlib.resources import files
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.result import analyse
from harness.analysis.timeline import Timeline
from harness.cli.look.rebuilding import rebuild
from harness.detectors import diagnose
from harness.model import Event, ExitCode, Outcome
from harness.model.phases import CANCELED, COMPUTING, FAILED, POD_PHASES, REQUESTED_CPU_CORES, SKIPPED, SUCCEEDED
from harness.model.plan import Limits
from harness.store import RunFolder
from harness.store.folder import JUNIT, REPORT, REPORT_HTML, REPORT_MARKDOWN
from harness.store.tables import load
from reports import document
from reports.document import tidy
from reports.figures import figures
from reports.markdown import cell
from reports.summary import Banner, banner, summary
from tests.support.stories import stairs
from tests.support.timelines import Story, burst

FORMATS = (REPORT_HTML, REPORT, REPORT_MARKDOWN, JUNIT)
SLOS = ("p95(run.duration) < 20m", "failed_ratio < 0.01", "throughput > 100/h")
EVIL = "</script><script>alert(1)</script> | `x` *y* \x00 <b>"


@pytest.fixture(scope="module")
def full_store(tmp_path_factory):
    story = burst(store_full_from=0.6)
    story.slos = SLOS
    folder = story.write(tmp_path_factory.mktemp("runs"))
    return folder, rebuild(folder)


def documented(folder):
    return json.loads((folder.path / REPORT).read_bytes())


def checked(document):
    schema = json.loads((files("reports") / "report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def test_the_json_fits_its_schema_and_names_the_fault(full_store):
    document = checked(documented(full_store[0]))
    assert document["validity"]["verdict"] == "VALID"
    assert document["findings"][0]["name"] == "store-full"
    assert [slo["met"] for slo in document["slos"]] == [True, False, True]
    assert [slo["state"] for slo in document["slos"]] == ["met", "failed", "met"]
    assert document["exit_code"] == 3
    ledger = document["ledger"]
    assert ledger["intended"] == ledger["terminal"] + ledger["in_flight"] + ledger["missed"] + ledger["rejected"] == 200
    assert sum(phase["share"] for phase in document["phases"]["phases"]) == pytest.approx(1.0, abs=1e-4)


def test_a_report_is_the_same_bytes_wherever_the_folder_lies(full_store, tmp_path):
    folder, _ = full_store
    before = {name: (folder.path / name).read_bytes() for name in FORMATS}
    elsewhere = tmp_path / "renamed"
    shutil.copytree(folder.path, elsewhere)
    for name in FORMATS:
        (elsewhere / name).unlink()
    rebuild(RunFolder.open(elsewhere))
    assert {name: (elsewhere / name).read_bytes() for name in FORMATS} == before


def test_an_unsealed_folder_gives_the_same_report(full_store, tmp_path):
    folder, _ = full_store
    shutil.copytree(folder.path, tmp_path / "open")
    shutil.rmtree(tmp_path / "open" / "tables")
    unsealed = RunFolder.open(tmp_path / "open")
    timeline = Timeline.from_frames(unsealed.read_plan(), load(unsealed))
    assert json.loads(document.render(analyse(timeline, diagnose(timeline)))) == documented(folder)


def test_the_page_is_one_small_file_without_external_requests(full_store):
    page = (full_store[0].path / REPORT_HTML).read_text()
    assert len(page.encode()) < 500_000
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)


def test_the_summary_says_verdict_finding_commands_and_ledger(full_store):
    text = summary(full_store[1])
    lines = text.splitlines()
    assert lines[0].startswith("VALID: The artifact store ran out of space")
    assert "SLO FAILED: failed_ratio < 0.01 (40.00%, 95% interval 33.46% to 46.92%)" in lines
    assert "kubectl patch pvc seaweedfs-pvc -n kubeflow" in text
    assert "Runs: 200 intended = 120 succeeded + 80 failed" in lines
    assert len(lines) <= 22


def test_every_report_says_what_detectors_lacked_and_what_would_show_it(full_store):
    folder, result = full_store
    of_json = documented(folder)
    lacked = {"observation": "node cpu", "sources": "metrics-server or Prometheus"}
    assert lacked in next(each["lacked"] for each in of_json["not_judged"] if each["name"] == "cpu-starved")
    (logs, *_) = next(each["lacked"] for each in of_json["judged_with_less"] if each["name"] == "store-full")
    assert (logs["observation"], logs["sources"]) == ("step logs", "records from Kubernetes")
    assert logs["loses"] == "the error that the store returned"
    markdown, page = ((folder.path / name).read_text() for name in (REPORT_MARKDOWN, REPORT_HTML))
    assert "Missing: node cpu (metrics-server or Prometheus)" in markdown
    assert (
        "- `store-full` lacks the error that the store returned. Missing: step logs (records from Kubernetes)"
        in markdown
    )
    assert '<td class="long">node cpu (metrics-server or Prometheus)</td>' in page
    assert '<td class="long">the error that the store returned</td>' in page
    silent, less = (line for line in summary(result).splitlines() if "udged" in line)
    assert "cpu-starved, stranded-capacity (missing: metrics-server or Prometheus)" in silent
    assert less.startswith("Judged with less: ")
    assert "; failures" in less


def test_junit_has_a_case_for_validity_and_for_each_slo(full_store):
    suite = ET.fromstring((full_store[0].path / JUNIT).read_bytes()).find("testsuite")
    assert [case.get("name") for case in suite.findall("testcase")] == ["validity", *SLOS]
    assert [bool(case.findall("failure")) for case in suite.findall("testcase")] == [False, False, True, False]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "0")


# Of the schema that Jenkins's xUnit plugin checks against: element → attributes it may have, those it must, children.
JUNIT_SHAPE = {
    "testsuites": (set(), set(), ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"name", "tests", "failures", "errors"},
        ["testcase", "system-out"],
    ),
    "testcase": ({"name", "classname", "time"}, {"name"}, ["skipped", "error", "failure"]),
    "failure": ({"type", "message"}, {"type"}, []),
    "error": ({"type", "message"}, {"type"}, []),
    "skipped": ({"message"}, set(), []),
    "system-out": (set(), set(), []),
}


@pytest.mark.parametrize("valid", [True, False])
def test_junit_has_the_shape_that_ci_servers_know(tmp_path, valid):
    story = burst(20, store_full_from=0.5)
    story.slos = ("failed_ratio < 0.1", "p50(phase.start) < 9h", "throughput > 1/h")
    story.intended += not valid
    folder = story.write(tmp_path)
    rebuild(folder)
    document = ET.fromstring((folder.path / JUNIT).read_bytes())
    assert document.tag == "testsuites"
    for element in document.iter():
        may, must, children = JUNIT_SHAPE[element.tag]
        assert must <= set(element.attrib) <= may
        places = [children.index(child.tag) for child in element]
        assert places == sorted(places)
    kinds = [(each.tag, each.get("type")) for each in document.iter() if each.tag in {"error", "failure", "skipped"}]
    assert kinds == ([("failure", "missed")] if valid else [("error", "invalid"), *[("skipped", None)] * 3])
    datetime.fromisoformat(document[0].attrib["timestamp"])


@pytest.mark.parametrize("strict", [False, True])
def test_an_slo_that_is_met_but_not_proven_is_amber_and_fails_strict_gates_only(tmp_path, strict):
    story = burst(30)
    story.slos, story.limits = ("p95(run.duration) < 1h", "p99(run.duration) < 1h"), Limits(fail_undecided=strict)
    folder = story.write(tmp_path)
    report = rebuild(folder)
    told = "about 110 such runs would prove it"
    assert "SLO met, not proven: p95(run.duration) < 1h (37 s, 95% interval from " in summary(report)
    assert "SLO inconclusive: p99(run.duration) < 1h (30 values are too few for this quantile" in summary(report)
    assert told in summary(report)
    page, markdown = ((folder.path / name).read_text() for name in (REPORT_HTML, REPORT_MARKDOWN))
    assert f'<li class="badge warn">{story.slos[0].replace("<", "&lt;")}: met, not proven <small>' in page
    assert "⚠️ met, not proven | " in markdown
    assert "❔ inconclusive | " in markdown
    assert told in page
    document = checked(documented(folder))
    assert [(each["state"], each["runs_needed"]) for each in document["slos"]] == [
        ("met, not proven", 110), ("inconclusive", None),
    ]  # fmt: skip
    failures = ET.fromstring((folder.path / JUNIT).read_bytes()).iter("failure")
    assert [each.get("type") for each in failures] == (["unproven", "unknown"] if strict else ["unknown"])


def test_an_invalid_test_meets_and_misses_no_slo(tmp_path):
    story = burst(20)
    story.slos = ("throughput > 1/h", "throughput > 1000000/h")
    story.intended = 21
    folder = story.write(tmp_path)
    report = rebuild(folder)
    assert report.verdict == "INVALID"
    assert summary(report).count("SLO no verdict: throughput") == 2
    assert (folder.path / REPORT_MARKDOWN).read_text().count("⛔ no verdict |") == 2
    page = (folder.path / REPORT_HTML).read_text()
    assert page.count(": no verdict <small>") == 2
    assert page.index("<b>INVALID</b> the test has no verdict on the platform") < page.index("<h1>")


def test_every_figure_is_on_the_page_even_when_no_run_finished(tmp_path):
    story = burst(40)
    story.records = [r for r in story.records if not (isinstance(r, Event) and r.kind == "Run")]
    folder = story.write(tmp_path)
    drawn = figures(rebuild(folder))
    assert {"pods", "work", "pending"} <= set(drawn)
    assert "runs" not in drawn
    page = (folder.path / REPORT_HTML).read_text()
    assert [key for key in drawn if f'id="plot-{key}"' not in page] == []


@pytest.mark.parametrize(
    ("change", "code", "verdict", "shown", "sign"),
    [
        ("none", ExitCode.OK, "VALID", Banner("PASSED", "", "good"), "✅"),
        ("unproven", ExitCode.OK, "VALID", Banner("PASSED", "met, not proven: more runs are needed", "warn"), "✅"),
        ("no slo", ExitCode.OK, "VALID", Banner("NO OBJECTIVE", "nothing was demanded of this test", "plain"), "✅"),
        ("slo", ExitCode.SLO_FAILED, "VALID", Banner("FAILED", "throughput > 1000000/h", "bad"), "❌"),
        ("unjudged", ExitCode.SLO_FAILED, "VALID",
         Banner("FAILED", "max(run.duration) < 9h (inconclusive)", "bad"), "❌"),
        ("missed", ExitCode.INVALID, "INVALID", Banner("INVALID", "the test has no verdict on the platform", "warn"), "⛔"),
        ("interrupted", ExitCode.INTERRUPTED, "INVALID",
         Banner("INTERRUPTED", "what was recorded until then is below", "warn"), "⛔"),
    ],
)  # fmt: skip
def test_the_exit_code_and_the_banner_report_the_outcome(tmp_path, change, code, verdict, shown, sign):
    story = burst(20)
    story.slos = ("throughput > 1/h",)
    if change == "no slo":
        story.slos = ()
    elif change == "unproven":
        story.slos = ("failed_ratio < 0.01",)
    elif change == "slo":
        story.slos = ("throughput > 1000000/h",)
    elif change == "unjudged":
        story.slos = ("p50(phase.start) < 9h", "max(run.duration) < 9h")
        story.intended = 101
        for seq in range(20, 101):
            run = story.submit(seq)
            story.run(run, 0.0, None if seq == 100 else 5.0)
    elif change == "missed":
        story.intended = 21
        story.submit(20, lag=None, outcome=Outcome.MISSED, status=None, error="stopped")
    elif change == "interrupted":
        story.slos = ("throughput > 1000000/h",)
        story.event(3.0, "Test", "test", "Interrupted")
    folder = story.write(tmp_path)
    report = rebuild(folder)
    assert (report.exit_code, report.verdict) == (code, verdict)
    assert checked(documented(folder))["exit_code"] == code
    assert banner(report) == shown
    page = (folder.path / REPORT_HTML).read_text()
    assert f'<div class="banner {shown.tone}"><p><b>{shown.word}</b>' in page
    assert f'<li class="badge plain">{report.verdict_text}</li>' in page, "validity stands beside, without a colour"
    assert f"{sign} **{verdict}**" in (folder.path / REPORT_MARKDOWN).read_text()


@pytest.mark.parametrize("records", ["nothing", "submissions only", "observed only"])
def test_missing_records_still_give_a_report(tmp_path, records):
    story = Story(intended=0 if records == "observed only" else 2, started=records != "observed only")
    if records == "submissions only":
        story.submit(0, outcome=Outcome.REJECTED, status=503, error="busy")
        story.submit(1)
    elif records == "observed only":
        story.run("a", 0.0, 5.0)
        story.run("b", 1.0, 7.0, FAILED, "boom")
    folder = story.write(tmp_path)
    report = rebuild(folder)
    checked(documented(folder))
    assert summary(report)
    assert html.escape(report.headline) in (folder.path / REPORT_HTML).read_text()


def test_platform_messages_are_escaped(tmp_path):
    story = Story(intended=1, slos=("failed_ratio < 0.5",))
    story.run(story.submit(0), 0.0, 5.0, FAILED, EVIL)
    folder = story.write(tmp_path)
    rebuild(folder)
    assert "<script>alert" not in (folder.path / REPORT_HTML).read_text()
    assert "<script" not in (folder.path / REPORT_MARKDOWN).read_text()
    ET.fromstring((folder.path / JUNIT).read_bytes())
    assert cell("a|b\nc") == "a\\|b c"


def test_a_run_on_several_numbers_of_nodes_gives_a_scaling_law(tmp_path):
    folder = stairs(lambda n: 240.0 * n / (1 + 0.2 * (n - 1))).write(tmp_path)
    report = rebuild(folder)
    law = checked(documented(folder))["scaling"]
    assert (law["law"], law["fitted_on"]) == ("amdahl", [1, 8])
    assert law["enough_nodes"]["low"] < 36 < law["enough_nodes"]["high"]  # 0.9 / (1 - 0.9) * (1 - 0.2) / 0.2
    drawn = figures(report)["scaling"]
    assert "an extrapolation: beyond twice the measured range" in drawn.caption
    assert "Fitted on 1 to 8 nodes: Amdahl's law." in drawn.caption


def test_numbers_are_rounded_and_nan_is_null():
    assert tidy({"a": [1 / 3, float("nan"), float("inf")], "b": (1, True)}) == {
        "a": [0.333333, None, None],
        "b": [1, True],
    }


ENDS = st.one_of(st.none(), st.floats(-5.0, 60.0))
STRETCHES = st.lists(st.tuples(st.sampled_from((*POD_PHASES[:6], COMPUTING)), st.floats(-1.0, 9.0), ENDS), max_size=4)
RUNS = st.tuples(
    st.sampled_from(Outcome),
    st.sampled_from((SUCCEEDED, FAILED, CANCELED, SKIPPED)),
    ENDS,
    STRETCHES,
    st.sampled_from((None, "n0")),
)


@settings(max_examples=8)
@given(
    runs=st.lists(RUNS, max_size=25),
    skew=st.sampled_from((0.0, 0.0, -7.3, 3600.0)),
    nodes=st.lists(st.tuples(ENDS, ENDS), max_size=2),
    target=st.sampled_from(("kfp", "hetida")),
)
def test_any_records_give_a_report_that_fits_the_schema(tmp_path_factory, runs, skew, nodes, target):
    """No run, one run, all failed or going on, no nodes, clocks that differ, stretches that end before they start."""
    story = Story(intended=len(runs), slos=SLOS, target=target)
    for number, (ready, gone) in enumerate(nodes):
        story.node(f"n{number}", -10.0, ready, gone)
    for seq, (outcome, state, lasted, stretches, node) in enumerate(runs):
        run = story.submit(seq, outcome=outcome, lag=None if outcome is Outcome.MISSED else 0.001)
        if outcome is Outcome.ACCEPTED:
            story.run(run, skew, None if lasted is None else skew + lasted, state)
            story.pod(run, "train", node, *((name, skew + a, b and skew + a + b) for name, a, b in stretches))
    story.sample(0.0, REQUESTED_CPU_CORES, 1.0, task="train")
    folder = story.write(tmp_path_factory.mktemp("runs"))
    rebuild(folder)
    checked(documented(folder))
