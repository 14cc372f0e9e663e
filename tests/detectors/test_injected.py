from dataclasses import replace

import pytest

from harness.detectors import detectors, diagnose
from harness.detectors.doubts import generator_lag
from harness.detectors.nodes import driver_overhead
from harness.model.phases import GENERATOR_CPU, NODE_CPU_CORES, REQUESTED_MEMORY_BYTES, RUNNING, STORE_PROBE_SECONDS
from tests.support.injected.doubtful import limited
from tests.support.injected.every_fault import INJECTED, NAMED, plausible
from tests.support.injected.loads import NODES, steady, with_volume
from tests.support.injection.seen import SOURCES, seen
from tests.support.timelines import Story


@pytest.mark.parametrize("count", [30, 80, 200])
def test_a_platform_that_sustains_its_load_has_no_findings(count, tmp_path):
    diagnosis = diagnose(with_volume(steady(count)).timeline(tmp_path))
    assert diagnosis.validity.valid
    assert diagnosis.findings == ()


@pytest.mark.parametrize("stamped", [0.0, 0.7])
def test_a_pod_with_a_timestamp_before_the_response_counts_as_no_wait(stamped, tmp_path):
    story = steady(40, gap=lambda _: 20.0, first=lambda _: -stamped)
    (finding,) = [each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "controller-backlog"]
    assert "median wait 0 s before the first pod" in finding.evidence[1].statement


@pytest.mark.parametrize("target", ["kfp", "argo", "hetida", "another"])
def test_an_empty_record_lists_what_applies_to_the_platform_as_not_judged(target, tmp_path):
    diagnosis = diagnose(Story(target=target).timeline(tmp_path))
    silent = {each.name for each in diagnosis.not_judged}
    elsewhere = {each.NAME for each in detectors() if target not in getattr(each, "TARGETS", (target,))}
    of_services = {"adapter-slow", "runtime-saturated", "slow-worker", "lb-imbalance"}
    assert diagnosis.findings == ()
    assert not silent & elsewhere
    assert (silent >= of_services) == (target not in {"kfp", "argo"})
    assert silent >= {each.NAME for each in detectors() if not hasattr(each, "TARGETS")} - of_services
    assert all(each.reason for each in diagnosis.not_judged)


def test_without_kubernetes_the_report_says_what_could_not_be_judged(tmp_path):
    story = steady(40)
    story.records = [
        r for r in story.records if type(r).__name__ != "Node" and getattr(r, "source", "") != "kubernetes"
    ]
    diagnosis = diagnose(story.timeline(tmp_path))
    silent = {s.name: s.reason for s in diagnosis.not_judged}
    assert "no pods were observed" in silent["nodes-exhausted"]
    assert "no nodes were observed" in silent["nodes-exhausted"]
    assert "store-full" not in silent  # messages of runs suffice
    assert diagnosis.findings == ()


def test_two_faults_are_both_found_and_the_one_that_fails_runs_comes_first(tmp_path):
    both = steady(pull=9.0, fails=lambda seq: "OOMKilled: container main" if seq % 3 == 0 else "")
    assert [f.name for f in diagnose(both.timeline(tmp_path)).findings[:2]] == ["oom", "image-pull"]


@pytest.mark.parametrize(("driver", "count", "sure"), [(0.6, 40, None), (6.0, 40, 0.95), (6.0, 10, 0.5)])
def test_slow_drivers_are_found_with_less_confidence_for_few_runs(driver, count, sure, tmp_path):
    diagnosis = diagnose(steady(count, driver=driver, work=driver / 5).timeline(tmp_path))
    found = [finding for finding in diagnosis.findings if finding.name == "driver-overhead"]
    assert [finding.confidence for finding in found] == ([] if sure is None else [sure])


@pytest.mark.parametrize(("every", "found"), [(1, 0), (3, 1)])
def test_how_long_drivers_of_failed_runs_last_is_no_overhead(every, found, tmp_path):
    story = steady(60, driver=6.0, work=1.2, fails=lambda seq: "main: Error" if seq % every == 0 else "")
    assert len(driver_overhead.detect(story.timeline(tmp_path))) == found


@pytest.mark.parametrize(
    ("driver", "first", "found"), [(3.2, 8.0, 1), (3.2, 12.0, 0), (10.4, 70.0, 1), (10.4, 140.0, 0)]
)
def test_small_steps_count_from_a_larger_share_of_the_time_than_slow_drivers(driver, first, found, tmp_path):
    """Drivers take 16, 11, 11 and 7 % of the runs' time; those that run for 5 s are slow."""
    story = steady(40, driver=driver, work=1.0, first=lambda _: first)
    assert len(driver_overhead.detect(story.timeline(tmp_path))) == found


@pytest.mark.parametrize(("work", "confidence"), [(6.0, 0.95), (20.0, 0.85)])
def test_storing_counts_with_what_the_next_step_reads(work, confidence, tmp_path):
    """Of each 2 s, the second step reads as long: 8 % of a run's time are 12 %."""
    story = steady(40, work=work, store=2.0)
    for second in range(5, 160, 10):
        story.sample(float(second), STORE_PROBE_SECONDS, 1.5, operation="PUT", bucket="mlpipeline")
    diagnosis = diagnose(story.timeline(tmp_path))
    found = [finding.confidence for finding in diagnosis.findings if finding.name == "store-slow"]
    assert found == [confidence]


@pytest.mark.parametrize(("use", "starved"), [(3.76, False), (3.98, True)])
def test_a_well_used_node_is_not_starved(use, starved, tmp_path):
    story = steady(60)
    for second in range(0, 60, 5):
        for name in NODES:
            story.sample(float(second), NODE_CPU_CORES, use, node=name)
    assert ("cpu-starved" in {f.name for f in diagnose(story.timeline(tmp_path)).findings}) is starved


@pytest.mark.parametrize(
    ("lag", "work", "answer", "said"),
    [
        (0.004, 8.0, 0.003, []),  # as late as the answer takes, and nothing beside the run
        (0.500, 8.0, 0.003, ["late"]),  # more than 1 % of a run
    ],
)
def test_lag_is_compared_with_the_run_duration_not_with_the_response_time(lag, work, answer, said, tmp_path):
    timeline = steady(40, lag=lag, work=work, service=lambda _: answer).timeline(tmp_path)
    found = generator_lag.detect(timeline)
    assert [f.confidence for f in found] == [0.9] * len(said)


@pytest.mark.parametrize(("service", "found"), [(0.02, 1), (0.5, 0)])
def test_lag_that_shows_in_short_executions_is_found_in_a_valid_test(service, found, tmp_path):
    story = Story(intended=100)
    for seq in range(100):
        lag = 0.02 if seq % 20 == 0 else 0.001
        run = story.submit(seq, due=1.0 * seq, lag=lag, service=service)
        story.run(run, seq + lag, seq + lag + service)
    timeline = story.timeline(tmp_path)
    assert diagnose(timeline).validity.valid
    assert [f.confidence for f in generator_lag.detect(timeline)] == [0.6] * found


@pytest.mark.parametrize(
    ("status", "error", "named"),
    [
        (429, "too many requests", "submissions-limited"),
        (429, "too many requests; Retry-After: 2", "submissions-limited"),
        (503, "overloaded; Retry-After: Fri, 27 Nov 2026 12:00:00 GMT", "submissions-limited"),
        (503, "overloaded", "api-errors"),
        (500, "Retry-After: 2", "api-errors"),
    ],
)
def test_refusals_that_ask_to_wait_are_a_limit_and_others_are_errors(status, error, named, tmp_path):
    found = {f.name: f for f in diagnose(limited(status, error).timeline(tmp_path)).findings}
    assert set(found) & {"submissions-limited", "api-errors"} == {named}
    if named == "submissions-limited":
        assert found[named].title == f"The platform limits submissions to about 0.3/s ({status})"


def test_runs_shorter_than_the_timestamp_resolution_are_not_compared_with_the_lag(tmp_path):
    story = Story(intended=100)
    for seq in range(100):
        run = story.submit(seq, due=seq + 0.2, lag=0.03 if seq % 20 == 0 else 0.001, service=0.01)
        story.run(run, seq, seq)  # in whole seconds: over before it was due
    (finding,) = generator_lag.detect(story.timeline(tmp_path))
    assert plausible(finding.evidence[0])


@pytest.mark.parametrize(
    ("busy", "found"), [(1, []), (8, ["The load generator is short of CPU: it may record responses late"])]
)
def test_a_short_cpu_peak_of_the_generator_is_no_finding_and_sustained_load_is(busy, found, tmp_path):
    story = steady(40)
    for k in range(20):
        story.sample(4.0 * k, GENERATOR_CPU, 0.95 if k < busy else 0.1, worker="0")
    assert [f.title for f in generator_lag.detect(story.timeline(tmp_path))] == found


def test_in_a_valid_test_a_bottleneck_comes_before_a_doubt_about_the_generator(tmp_path):
    story = steady(40, pull=6.0, work=20.0)
    for k in range(20):
        story.sample(4.0 * k, GENERATOR_CPU, 0.95, worker="0")
    diagnosis = diagnose(story.timeline(tmp_path))
    assert diagnosis.validity.valid
    assert [f.name for f in diagnosis.findings] == ["image-pull", "generator-lag"]


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        *((detector.NAME, need) for detector in detectors() for need in detector.NEEDS if need in SOURCES),
        *((name, "pod events") for name in ("autoscaler-slow", "quota")),  # they do without, if they must
    ],
)
def test_a_missing_source_leaves_a_finding_or_a_reason_for_not_judging(name, missing, tmp_path):
    """Each detector × each source it needs: without it, the detector finds its fault or gives a reason."""
    story = INJECTED[name]()
    story.records = list(seen(story.records, without=frozenset({missing}), whole=False))
    diagnosis = diagnose(story.timeline(tmp_path))
    found = [finding.name for finding in diagnosis.findings]
    silent = {each.name: each.reason for each in diagnosis.not_judged}
    assert NAMED.get(name, name) in found or silent[name]
    # What else may be named then: full nodes where nobody saw why they are, a store that takes nothing for its space,
    # runs that failed, did not end or took longer for no known reason.
    confused = {"nodes-exhausted", "store-full", "failures", "censoring", "unexplained-wait"}
    assert found[:1] in ([], [NAMED.get(name, name)]) or (found[0] in confused and name in silent)


def test_a_step_out_of_memory_is_given_twice_its_request(tmp_path):
    story = INJECTED["oom"]()
    story.sample(1.0, REQUESTED_MEMORY_BYTES, 512 * 2**20, task="prepare")
    (finding,) = [each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "oom"]
    assert finding.commands == ('prepare.set_memory_request("1024Mi").set_memory_limit("1024Mi")',)


def test_a_platform_pod_killed_for_memory_is_no_step(tmp_path):
    story = steady(40)
    story.event(20.0, "Pod", "ml-pipeline-7d9f", "OOMKilled", "container ml-pipeline ended with exit code 137")
    (finding,) = diagnose(story.timeline(tmp_path)).findings
    assert finding.title == "Pods outside the runs ran out of memory: ml-pipeline-7d9f"


@pytest.mark.parametrize(("runs", "share"), [(8, "12%"), (40, "2%"), (400, "0.25%")])
def test_a_run_out_of_memory_counts_though_its_pod_only_says_exit_code_137(runs, share, tmp_path):
    story = steady(runs, fails=lambda seq: "container main ended with exit code 137" if seq == 3 else "")
    (end,) = (r for r in story.records if getattr(r, "message", ""))
    story.records[story.records.index(end)] = replace(end, reason="OOMKilled")
    (finding,) = [each for each in diagnose(story.timeline(tmp_path)).findings if each.name == "oom"]
    assert finding.title == f"Steps ran out of memory in prepare: {share} of the runs failed because of it"


def test_a_sigkill_without_the_kubelet_s_reason_is_probably_for_memory(tmp_path):
    story = steady(40, fails=lambda seq: "main: Error (exit code 137)" if seq % 4 == 0 else "")
    (finding,) = diagnose(story.timeline(tmp_path)).findings
    assert (finding.name, finding.confidence) == ("oom", 0.6)
    assert "25% of the runs failed with exit code 137" in finding.title


def test_pods_of_others_runs_that_were_killed_or_refused_do_not_count(tmp_path):
    story = steady(40)
    for k in range(20):
        pod = story.pod(f"foreign-{k}", "train", NODES[0], (RUNNING, 10.0, 20.0))
        story.event(20.0, "Pod", pod, "OOMKilled", "container main ended with exit code 137", run=f"foreign-{k}")
        story.event(20.0, "Pod", pod, "Evicted", "The node was low on resource: memory.", run=f"foreign-{k}")
        story.event(21.0, "Pod", pod, "ImagePullBackOff", "Back-off pulling image", run=f"foreign-{k}")
        story.event(22.0, "Task", "train", "PENDING", "forbidden: exceeded quota: tight", run=f"foreign-{k}")
    assert diagnose(story.timeline(tmp_path)).findings == ()


def test_adapter_failures_are_not_reported_as_unexplained_too(tmp_path):
    names = [each.name for each in diagnose(INJECTED["adapter-errors"]().timeline(tmp_path)).findings]
    assert names[0] == "adapter-errors"
    assert "failures" not in names
