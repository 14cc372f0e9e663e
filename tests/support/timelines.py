"""Synthetic runs for tests of analysis, detectors and reports, through a real run folder.

A `Story` says what happened in seconds after t0; `write` records it as the load and the observer would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.analysis.timeline import Timeline
from harness.model import Event, Node, Outcome, Plan, Sample, Span, Submission
from harness.model.phases import (
    FAILED,
    PULLING,
    RUN,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
    SUCCEEDED,
    UNSCHEDULABLE,
)
from harness.model.plan import Limits
from harness.store import RunFolder
from harness.store.tables import load, seal

T0 = 1_790_000_000 * 10**9
GIB = 2**30
STORE_MESSAGE = (
    "failed to save outputs: unable to write outputs to s3://mlpipeline/v2/artifacts/training/{run}/train/model: "
    "timed out waiting for the condition: XMinioStorageFull: Storage backend has reached its minimum free disk "
    "threshold"
)


def at(seconds: float) -> int:
    return T0 + round(seconds * 1e9)


@dataclass
class Story:
    """Records of one test, in any order."""

    intended: int = 0
    records: list[object] = field(default_factory=list)
    slos: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    schedule: Mapping[str, object] = field(default_factory=lambda: {"name": "burst"})
    started: bool = True
    target: str = "kfp"
    tenants: str = ""  # namespaces, with a semicolon between them

    def submit(
        self,
        seq: int,
        *,
        due: float = 0.0,
        lag: float | None = 0.001,
        service: float | None = 0.02,
        outcome: Outcome = Outcome.ACCEPTED,
        status: int | None = 200,
        error: str | None = None,
        worker: int = 0,
    ) -> str:
        sent = None if lag is None else due + lag
        answered = None if sent is None or service is None else sent + service
        run = f"run-{seq:04d}" if outcome is Outcome.ACCEPTED else None
        self.records.append(
            Submission(
                seq, f"s{seq}", f"s{seq}-plant", at(due), None if sent is None else at(sent),
                None if answered is None else at(answered), outcome, run, worker, status, error,
            )
        )  # fmt: skip
        return f"run-{seq:04d}"

    def run(
        self, run: str, created: float, over: float | None, state: str = SUCCEEDED, message: str = "", *, name: str = ""
    ) -> None:
        ended = None if over is None else at(over)
        self.records.append(Span(run, "", RUN, at(created), ended, task=name, source="kfp", resolution_s=1.0))
        if over is not None:
            self.records.append(Event(at(over), "Run", run, state, message, "kfp", run))

    def pod(
        self, run: str, task: str, node: str | None, *stretches: tuple[str, float, float | None], reason: str = ""
    ) -> str:
        """The spans of a pod; `reason` was stated in the last one."""
        step = f"{run}-{task}"
        for k, (phase, start, end) in enumerate(stretches, 1):
            ended_at, said = None if end is None else at(end), reason if k == len(stretches) else ""
            self.records.append(Span(run, step, phase, at(start), ended_at, task, 0, node, "kubernetes", 1.0, said))
        return step

    def event(self, when: float, kind: str, name: str, reason: str, message: str = "", **more: object) -> None:
        self.records.append(Event(at(when), kind, name, reason, message, "kubernetes", **more))  # type: ignore[arg-type]

    def sample(self, when: float, metric: str, value: float, **labels: str) -> None:
        self.records.append(Sample(metric, at(when), value, labels))

    def node(self, name: str, created: float, ready: float | None, gone: float | None = None, **more: object) -> None:
        values = {"pool": "train", "cpu": 4.0, "memory": 16.0 * GIB, **more}
        self.records.append(
            Node(
                name,
                created_at=at(created),
                ready_at=None if ready is None else at(ready),
                gone_at=None if gone is None else at(gone),
                **values,  # type: ignore[arg-type]
            )
        )

    def plan(self) -> Plan:
        return Plan(
            target=self.target,
            host="http://127.0.0.1:8888",
            schedule=self.schedule,
            intended=self.intended,
            seed=7,
            simulated=True,
            slos=self.slos,
            limits=self.limits,
            target_options={"namespace": "kubeflow", "pipeline": "training.yaml", "tenants": self.tenants},
            digests={"schedule": "00"},
            versions={"pipeswarm": "0.1.0"},
            command=("locust", "-f", "locustfiles/kfp.py", "--headless", "--schedule", "burst", "--runs", "200"),
            started_at=T0,
        )

    def write(self, runs_dir: Path, name: str = "test") -> RunFolder:
        folder = self.record(runs_dir, name)
        seal(folder)
        return folder

    def record(self, runs_dir: Path, name: str = "test") -> RunFolder:
        folder = RunFolder.create(runs_dir, name)
        folder.write_plan(self.plan())
        with folder.recorder() as recorder:
            if self.started:
                recorder.write(Event(T0, "Test", "test", "Started"))
            for record in self.records:
                recorder.write(record)
        return folder

    def timeline(self, runs_dir: Path) -> Timeline:
        folder = self.record(runs_dir)  # tests of the store prove that sealed tables hold the same
        return Timeline.from_frames(folder.read_plan(), load(folder))


def burst(
    count: int = 200, *, store_full_from: float | None = None, pool: int = 4, slots: int = 4, step: float = 3.0
) -> Story:
    """A burst of runs with a driver and three steps each, worked off in waves by `pool` nodes with `slots` runs each.

    With `store_full_from` the store's volume fills over the runs and is full at that share of them; from then on runs
    fail in `train` with the store's message.
    """
    story = Story(intended=count)
    for k in range(pool):
        story.node(f"node-{k}", -600 if k < 2 else 4 + k, -590 if k < 2 else 10 + k)
    lanes = [0.5 if lane // slots < 2 else 10.5 + lane // slots for lane in range(pool * slots)]
    full_at = None if store_full_from is None else store_full_from * count
    for seq in range(count):
        run = story.submit(seq, lag=0.0004 * seq, service=0.02 + 0.0001 * seq)
        lane = min(range(len(lanes)), key=lanes.__getitem__)
        start = lanes[lane]
        failed = full_at is not None and seq >= full_at
        over = _steps(story, run, start, f"node-{lane // slots}", step, failed=failed)
        message = STORE_MESSAGE.format(run=run) if failed else ""
        story.run(run, 0.0, float(int(over) + 1), FAILED if failed else SUCCEEDED, message, name=f"s{seq}-plant")
        lanes[lane] = over
        if store_full_from is not None:
            available = max(0.0, 10 * GIB * (1 - (seq + 1) / full_at)) if full_at else 0.0
            story.sample(over, STORE_CAPACITY_BYTES, 10 * GIB, volume="seaweedfs-pvc", namespace="kubeflow")
            story.sample(over, STORE_AVAILABLE_BYTES, available, volume="seaweedfs-pvc", namespace="kubeflow")
    return story


def _steps(story: Story, run: str, start: float, node: str, step: float, *, failed: bool) -> float:
    now = start
    if start > 0.5:
        story.pod(run, "root-driver", node, (UNSCHEDULABLE, 0.5, start))
    story.pod(run, "root-driver", node, (SCHEDULING, now, now + 0.1), (STARTING, now + 0.1, now + 0.5))
    now += 0.5
    for task in ("prepare", "train", "evaluate"):
        pod = story.pod(
            run, task, node,
            (SCHEDULING, now, now + 0.1), (PULLING, now + 0.1, now + 0.4), (STARTING, now + 0.4, now + 0.6),
            (RUNNING, now + 0.6, now + 0.6 + step),
        )  # fmt: skip
        now += 0.6 + step
        if failed and task == "train":
            story.event(now, "Pod", pod, "Error", STORE_MESSAGE.format(run=run), run=run, type="Warning")
            break
        now += 0.2
    return now
