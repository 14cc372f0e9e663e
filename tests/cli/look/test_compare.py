import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.model import Node
from harness.model.phases import PLATFORM, VERSION
from tests.support.timelines import burst

EXAMPLE = Path(__file__).parents[3] / "examples" / "vineyard.csv"


def compared(capsys, *arguments):
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_vineyard_example_gives_the_published_reductions(capsys):
    rows = compared(capsys, "--table", EXAMPLE)["comparisons"]
    workflow = [row["change"] for row in rows if row["metric"] == "workflow (s)"]
    assert all(-0.25 <= change <= -0.14 for change in workflow)
    assert len(workflow) == 3
    assert not any(row["significant"] for row in rows)
    assert all("single test" in row["sentence"] for row in rows)
    assert main(["compare", "--table", str(EXAMPLE)]) == 0
    assert " ".join(capsys.readouterr().out.split()).count("repeat them") == 1


def test_run_folders_are_compared_by_variant_and_repetition(tmp_path, capsys):
    quick = [burst(100, step=3.0 + 0.01 * k).write(tmp_path, f"quick{k}").path for k in range(4)]
    slow = [burst(100, step=6.0 + 0.01 * k).write(tmp_path, f"slow{k}").path for k in range(4)]
    found = compared(capsys, ",".join(map(str, quick)), ",".join(map(str, slow)))
    p50 = next(row for row in found["comparisons"] if "p50" in row["metric"])
    assert p50["counts"] == [4, 4]
    assert p50["change"] > 0.5
    assert (p50["first"], p50["variant"]) == ("quick", "slow")


def test_the_faster_variant_is_recommended(tmp_path, capsys):
    path = tmp_path / "table.csv"
    rows = [f"{v},,{k},makespan (s),{took + k}" for v, took in (("a", 300), ("b", 200), ("c", 600)) for k in range(5)]
    path.write_text("\n".join(["variant,scale,repetition,metric,value", *rows]) + "\n")
    best = compared(capsys, "--table", path)["recommendation"]
    assert (best["variant"], best["next"]) == ("b", "a")
    assert best["better"] == ["makespan (s) (-33%)"]
    assert main(["compare", "--table", str(path)]) == 0
    assert "Recommended: b." in capsys.readouterr().out


def test_tests_of_different_scale_are_rejected_unless_forced(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a").path, burst(50).write(tmp_path, "b").path
    assert main(["compare", str(a), str(b)]) == 2
    assert "runs: 100 and 50" in capsys.readouterr().err
    forced = compared(capsys, a, b, "--force")
    assert any("runs: 100 and 50" in warning for warning in forced["warnings"])
    assert {row["scale"] for row in forced["comparisons"]} == {"different scales"}


def test_invalid_tests_are_flagged(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a"), burst(100)
    b.records = b.records[:-200]
    found = compared(capsys, a.path, b.write(tmp_path, "b").path)
    assert any("INVALID" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variant,scale,metric,value\n", "'repetition' is missing"),
        ("variant,scale,repetition,metric,value\na,1,1,m,x\n", "line 2, column 'value'"),
        ("variant,scale,repetition,metric,value\na,1,1,m,1\na,1,1,m,2\n", "line 3"),
        ("variant,scale,repetition,metric,value\na,1,1,m,1\n", "nothing to compare"),
    ],
)
def test_invalid_tables_are_rejected(tmp_path, capsys, text, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert main(["compare", "--table", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_a_run_may_be_given_only_once(tmp_path, capsys):
    a, b = (burst(100).write(tmp_path, name).path for name in "ab")
    assert main(["compare", f"{a},{b}", f"{b}/"]) == 2
    assert f"{b} is given twice" in capsys.readouterr().err


def test_the_output_fits_a_terminal(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a"), burst(100, step=30.0).write(tmp_path, "b")
    a.write_plan(replace(a.read_plan(), digests={"scenarios": 64 * "0"}))
    b.write_plan(replace(b.read_plan(), digests={"scenarios": 64 * "1"}))
    assert main(["compare", str(a.path), str(b.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert "warning: the tests differ in scenarios: 000000000000 and 111111111111" in lines


def test_the_primary_metric_is_named_in_advance_and_can_be_chosen(tmp_path, capsys):
    a, b = (burst(100, step=step).write(tmp_path, name).path for name, step in (("a", 3.0), ("b", 4.0)))
    found = compared(capsys, a, b)
    assert found["primary"] == found["comparisons"][0]["metric"] == "makespan (s)"
    chosen = compared(capsys, a, b, "--primary", "run.duration mean (s)")
    assert chosen["comparisons"][0]["metric"] == "run.duration mean (s)"
    assert [row["primary"] for row in chosen["comparisons"]].count(True) == 1
    assert main(["compare", str(a), str(b), "--primary", "speed"]) == 2
    assert "'speed' was not measured for two variants" in capsys.readouterr().err


def test_tests_that_are_not_bursts_are_judged_by_their_mean_run_duration(tmp_path, capsys):
    a, b = (burst(100).write(tmp_path, name) for name in "ab")
    for folder in (a, b):
        folder.write_plan(replace(folder.read_plan(), schedule={"name": "spread"}))
    assert compared(capsys, a.path, b.path)["primary"] == "run.duration mean (s)"


def test_other_nodes_and_another_address_are_told(tmp_path, capsys):
    a, b = burst(100).write(tmp_path, "a"), burst(100, pool=3).write(tmp_path, "b")
    b.write_plan(replace(b.read_plan(), host="https://other.example"))
    warnings = compared(capsys, a.path, b.path)["warnings"]
    assert any(each.startswith("the tests differ in nodes: a: ") for each in warnings)
    assert any("b: https://other.example" in each for each in warnings)


def test_another_machine_of_the_same_size_is_told(tmp_path, capsys):
    folders = []
    for name, machine in (("a", "Standard_D4s_v5"), ("b", "Standard_D4as_v4")):
        story = burst(100)
        story.records = [replace(each, machine=machine) if isinstance(each, Node) else each for each in story.records]
        folders.append(story.write(tmp_path, name).path)
    (warning,) = compared(capsys, *folders)["warnings"]
    assert warning == (
        "the tests differ in nodes: a: 4 × train (Standard_D4s_v5, 4 cores, 16.0 GiB); "
        "b: 4 × train (Standard_D4as_v4, 4 cores, 16.0 GiB)"
    )


def test_another_platform_version_is_told(tmp_path, capsys):
    """KFP's version is in the manifest; Kubernetes' is an event of the observer."""
    folders = []
    for name, kfp, kubernetes in (("a", "2.16.0", "v1.35.1"), ("b", "2.17.0", "v1.36.0")):
        story = burst(100)
        story.event(1.0, PLATFORM, "kubernetes", VERSION, kubernetes)
        folder = story.write(tmp_path, name)
        folder.write_plan(replace(folder.read_plan(), platform_versions={"kfp": kfp}))
        folders.append(folder.path)
    assert compared(capsys, *folders)["warnings"] == [
        "the tests differ in platform version: a: kfp 2.16.0, kubernetes v1.35.1; b: kfp 2.17.0, kubernetes v1.36.0"
    ]


def test_another_pool_of_equal_nodes_is_told(tmp_path, capsys):
    folders = []
    for name in ("cold", "warm"):
        story = burst(100)
        story.records = [replace(each, pool=name) if isinstance(each, Node) else each for each in story.records]
        folders.append(story.write(tmp_path, name).path)
    (warning,) = compared(capsys, *folders)["warnings"]
    assert "4 × cold (" in warning
    assert "4 × warm (" in warning


def test_a_version_that_one_test_could_not_see_is_no_difference(tmp_path, capsys):
    folders = [burst(100).write(tmp_path, name) for name in "abc"]
    for folder, versions in zip(
        folders, ({"argo": "v3.6.7", "kubernetes": "v1.36.0"}, {"argo": "v3.6.7"}, {}), strict=True
    ):
        folder.write_plan(replace(folder.read_plan(), platform_versions=versions))
    assert compared(capsys, *(folder.path for folder in folders))["warnings"] == []
    folders[2].write_plan(replace(folders[2].read_plan(), platform_versions={"argo": "v4.0.8"}))
    assert compared(capsys, *(folder.path for folder in folders))["warnings"] == [
        "the tests differ in platform version: a: argo v3.6.7; b: argo v3.6.7; c: argo v4.0.8"
    ]


@pytest.mark.parametrize("what", ["pipeline", "scenarios"])
def test_another_pipeline_or_other_data_are_told(tmp_path, capsys, what):
    a, b = (burst(100).write(tmp_path, name) for name in "ab")
    for folder, digest in ((a, "0" * 64), (b, "f" * 64)):
        folder.write_plan(replace(folder.read_plan(), digests={**folder.read_plan().digests, what: digest}))
    assert compared(capsys, a.path, b.path)["warnings"] == [f"the tests differ in {what}: {'0' * 12} and {'f' * 12}"]


def test_equal_tests_have_no_warnings(tmp_path, capsys):
    a, b = (burst(100).write(tmp_path, name).path for name in "ab")
    assert compared(capsys, a, b)["warnings"] == []


def test_folders_of_one_name_are_told_apart_by_the_folders_above(tmp_path, capsys):
    a, b = (burst(100).write(tmp_path / place, "run").path for place in ("before", "after"))
    assert {row["first"] for row in compared(capsys, a, b)["comparisons"]} == {"before/run"}


def test_a_scale_that_only_one_variant_has_is_told(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("variant,scale,repetition,metric,value\na,1Gi,1,m,1\nb,1Gi,1,m,2\na,2Gi,1,m,3\n")
    assert compared(capsys, "--table", path)["warnings"] == [
        "m at the scale '2Gi' was measured for a only: it is not compared"
    ]


def test_one_variant_is_not_a_comparison(capsys):
    assert main(["compare", "runs/x"]) == 2
    assert "two or more variants" in capsys.readouterr().err


@pytest.fixture(scope="module")
def hetida(tmp_path_factory):
    place = tmp_path_factory.mktemp("hetida")
    common = ["--profile=hetida-pattern-3", "--runs=300", f"--runs-dir={place}", "--quiet"]
    assert main(["simulate", "run", *common, "--schedule=burst", "--run-name=burst"]) == 0
    assert main(["simulate", "run", *common, "--schedule=spread", "--over=90s", "--run-name=spread"]) == 0
    return place


def test_what_spreading_the_executions_gains_is_told(hetida, capsys):
    found = compared(capsys, hetida / "burst", hetida / "spread")
    rows = {row["metric"]: row for row in found["comparisons"]}
    for metric in ("run.duration p95 (s)", "waiting (share of time)", "idle tail (share of time)"):
        assert rows[metric]["change"] < -0.3, metric
    assert rows["makespan (s)"]["change"] > 1
    (told,) = found["schedules"]
    assert told.startswith("spread (spread, over 90 s, runs 300) against burst (burst, runs 300): run duration p95 ")
    for name in ("waiting", "idle tail"):
        row = rows[f"{name} (share of time)"]
        assert f"{row['after']:.0%} instead of {row['before']:.0%}" in told
    # A burst is over sooner because it begins sooner, which is no merit of the platform.
    assert found["recommendation"]["variant"] == "spread"
    assert found["recommendation"]["compared"] == len(rows) - len(
        {"makespan", "throughput", "goodput", "money", "failed"}
    )
    assert any(
        w == "the tests differ in schedule: burst, runs 300 and spread, over 90 s, runs 300" for w in found["warnings"]
    )


def test_the_comparison_agrees_with_the_reports(hetida, capsys):
    rows = {row["metric"]: row for row in compared(capsys, hetida / "burst", hetida / "spread")["comparisons"]}
    for name, of in (("before", "burst"), ("after", "spread")):
        shared = json.loads((hetida / of / "report.json").read_bytes())["workers"]
        assert rows["imbalance (Gini)"][name] == pytest.approx(shared["gini"], rel=1e-4)
        assert rows["idle tail (share of time)"][name] == pytest.approx(shared["tail_s"] / shared["over_s"], rel=1e-4)


def test_equal_schedules_gain_nothing(tmp_path, capsys):
    a, b = (burst(60, step=step).write(tmp_path, name).path for name, step in (("a", 3.0), ("b", 4.0)))
    found = compared(capsys, a, b)
    assert found["schedules"] == []
    assert found["recommendation"]["compared"] > 3  # makespan and throughput count
