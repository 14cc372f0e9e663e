"""What an observer keeps while runs pass through: as much after thousands of them as after the first hundreds."""

import gc
import tracemalloc

from harness.collectors.collector import Activity
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.collectors.kubernetes.workflow.watch import Workflows
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.messages import Instant
from harness.collectors.runs.poll_policy import PollPolicy
from harness.collectors.runs.poller import RunPoller
from harness.model import Outcome, Plan, Submission
from harness.model.forgetting import Ids
from harness.model.phases import SUCCEEDED
from harness.model.records import Event
from harness.store import RunFolder
from harness.targets.target import ListedRun, RunPage
from tests.support.manifests import at, condition, ended, event, pod, workflow

KEPT_S = 60  # in the cluster, after its end
PODS = 1


class Cluster:
    """Shows a run a second to an observer's parts: its pods, their events, its workflow and its place in the listing."""

    def __init__(self, path):
        self.now_s = 0
        self.folder = RunFolder(path)
        self.journal = Journal(self.folder.recorder(), now=lambda: at(self.now_s))
        self.pods = Pods(self.journal, at(0))
        self.workflows = Workflows(self.journal, at(0), clock=lambda: self.now_s)
        self.events = Events(self.journal, self.pods.see_event, at(0), run_of_workflow=self.workflows.run_of)
        plan = Plan("kfp", "http://x", {"name": "constant"}, 10**6, 0, simulated=False)
        policy = PollPolicy(share=0.05, min_s=1.0, calm_s=5.0, max_s=60.0)
        self.poller = RunPoller(plan, policy, KnownRuns(plan), now_s=0.0, reads_tasks=False)

    def pass_by(self, seconds):
        for _ in range(seconds):
            self.now_s += 1
            self._begin(self.now_s)
            self._end(self.now_s)
            if self.now_s > KEPT_S:
                self._delete(self.now_s - KEPT_S)
            self._poll(self.now_s)

    def _poll(self, run):
        now = Instant(self.now_s, at(self.now_s))
        sent = Submission(run, "1", "n", now.at, now.at, now.at, Outcome.ACCEPTED, f"run-{run}", 0, 200, None)
        self.poller.grew([sent], "dispatching")
        self.poller.see_cluster(Activity(None, self.pods.alive, self.pods.runs, self.workflows.persisted))
        self.poller.tick(now)
        over = (ListedRun(f"run-{run}", f"name-{run}", SUCCEEDED, now.at, now.at),)
        self.poller.listed(now, RunPage(over, ""), 0.1)

    def _of(self, manifest, run):
        manifest["metadata"]["labels"]["pipeline/runid"] = f"run-{run}"
        return manifest

    def _pods(self, run, **status):
        for k in range(PODS):
            yield self._of(pod(f"pod-{run}-{k}", created=run, node="n", **status), run)

    def _begin(self, run):
        for each in self._pods(run):
            self.pods.see("ADDED", each)
            for reason in ("Scheduled", "Pulling", "Pulled", "Created", "Started"):
                self.events.see("ADDED", event(reason, reason, self.now_s, name=each["metadata"]["name"]))

    def _end(self, run):
        done = {"containerStatuses": [ended("main", run, run)], "conditions": [condition("PodScheduled", "True", run)]}
        for each in self._pods(run, phase="Succeeded", **done):
            self.pods.see("MODIFIED", each)
        for phase in ("Running", "Succeeded"):
            self.workflows.see("MODIFIED", self._workflow(run, phase))

    def _workflow(self, run, phase):
        shown = self._of(workflow(phase, persisted=phase == "Succeeded", created=run), run)
        shown["metadata"]["name"] = f"workflow-{run}"
        return shown

    def _delete(self, run):
        self.workflows.see("DELETED", self._workflow(run, "Succeeded"))
        for each in self._pods(run, phase="Succeeded"):
            self.pods.see("DELETED", each)


def kept_bytes():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_an_observer_keeps_as_much_of_a_long_test_as_of_a_short_one(tmp_path):
    cluster = Cluster(tmp_path)
    tracemalloc.start()
    try:
        cluster.pass_by(500)
        early = kept_bytes()
        cluster.pass_by(1000)
        left_by_a_run = (kept_bytes() - early) / 1000
    finally:
        tracemalloc.stop()
    assert left_by_a_run < 1000, "bytes: the ids of run and pods, and tables that double now and then"
    assert cluster.pods.phases() == {"Succeeded": 1500 * PODS}, "those that are forgotten count"
    assert "run-1" in cluster.poller
    assert not cluster.poller.going


def test_an_event_that_was_forgotten_is_not_recorded_again(tmp_path):
    """Another listing after a gap shows all events of the last hour; an image that can't be pulled fails again later."""
    cluster = Cluster(tmp_path)

    def told():
        return [(each.object, each.count) for each in cluster.folder.records(Event) if each.reason == "BackOff"]

    def back_off(count):
        return event("BackOff", "no", 1, name="pod-1-0", uid="e", last=cluster.now_s, count=count)

    cluster.pass_by(1)
    cluster.events.see("ADDED", back_off(1))
    cluster.pass_by(700)
    again = event("BackOff", "no", 1, name="pod-1-0", uid="e")
    cluster.events.see("LISTED", again)
    cluster.events.release(every=True)
    assert told() == [("pod-1-0", 1)]
    cluster.events.see("MODIFIED", back_off(2))
    cluster.events.release(every=True)
    assert told() == [("pod-1-0", 1), ("pod-1-0", 1)]
    late = event("BackOff", "no", 2, name="other", uid="late")
    cluster.events.see("ADDED", late)
    cluster.events.release(every=True)
    assert told()[-1] == ("other", 1), "new, though it happened before others that are forgotten"


def test_a_pod_that_comes_back_soon_keeps_the_spans_of_the_lost_one(tmp_path):
    cluster = Cluster(tmp_path)
    cluster.pass_by(100)
    assert cluster.pods.see_event(event("Killing", "x", 100, name="pod-20-0")) is not None, "deleted 20 s ago"
    cluster.pass_by(400)
    assert cluster.pods.see_event(event("Killing", "x", 500, name="pod-20-0")) is None


def test_ids_take_some_bytes_each():
    tracemalloc.start()
    try:
        before = kept_bytes()
        ids = Ids(f"0b5c2f8e-7d1a-4a43-9b25-{k:012}" for k in range(50_000))
        used = kept_bytes() - before
    finally:
        tracemalloc.stop()
    assert used < 16 * 50_000
    assert len(ids) == 50_000
    assert "0b5c2f8e-7d1a-4a43-9b25-000000049999" in ids
    assert "0b5c2f8e-7d1a-4a43-9b25-000000050000" not in ids
    ids.add("0b5c2f8e-7d1a-4a43-9b25-000000000000")
    assert len(ids) == 50_000
