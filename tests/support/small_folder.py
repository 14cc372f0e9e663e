"""A run folder of two submissions with a record of every kind."""

from pathlib import Path

from harness.model.plan import Plan
from harness.model.records import Event, Node, Outcome, Sample, Span, Submission
from harness.store.folder import KINDS, RunFolder

AT = 1_700_000_000_000_000_000
PLAN = Plan(
    "kfp",
    "http://platform",
    {"name": "burst", "runs": 2},
    2,
    7,
    simulated=False,
    command=("locust",),
    slos=("p95(run.duration) < 1m",),
)
RECORDS = (
    Submission(0, "s", "r", AT, AT, AT, Outcome.ACCEPTED, "run-0", 0, 200, None),
    Submission(1, "s", "r", AT, AT, AT, Outcome.REJECTED, None, 0, 500, "no"),
    Span("run-0", "pod", "running", AT, AT + 1, "train", node="n"),
    Span("run-0", "pod", "starting", AT, None, "train"),
    Sample("m", AT, 1.5, {"pod": "a"}),
    Event(AT, "Run", "run-0", "SUCCEEDED"),
    Node("n", "p", AT, AT, None, 4.0, 8e9),
)  # fmt: skip


def small_folder(runs_dir: Path) -> RunFolder:
    """Make the folder ``a`` below `runs_dir`."""
    made = RunFolder.create(runs_dir, "a")
    made.write_schedule([0.0, 0.0])
    made.write_plan(PLAN)
    with made.recorder() as recorder:
        for record in RECORDS:
            recorder.write(record)
    return made


def without_lines(folder: RunFolder, kind: type) -> None:
    """Tables alone: beside its lines a table that was not made of them is ignored."""
    (folder.path / f"{KINDS[kind]}.jsonl").unlink()
