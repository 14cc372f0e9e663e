"""Run folders whose texts are hostile: to a shell, a terminal, a CI, a page and an XML parser."""

from dataclasses import replace
from functools import cache

import pytest

from harness.cli.look.rebuilding import rebuild
from harness.model import Event, Node, Sample, Span, Submission
from tests.support.injected.every_fault import INJECTED

EVIL = (
    "';$(touch acted)`touch acted`|touch acted&\"\x1b]0;x\x07\x9b2J\n::error::x\n```\n[/b]<img src=x onerror=alert(1)>"
    "</script><script>window.poisoned=1</script><a href='javascript:alert(2)'>"
)
NAMED = ("store-full", "store-unreachable-from-old-nodes", "quota", "db-full", "failures", "cpu-starved")


def forged(record):
    """A record whose names and messages are hostile."""
    match record:
        case Node():
            return replace(record, name=record.name + EVIL)
        case Span():
            node = None if record.node is None else record.node + EVIL
            return replace(record, run=record.run + EVIL, node=node, task=record.task and record.task + EVIL)
        case Submission():
            error = None if record.error is None else record.error + EVIL
            return replace(record, run=None if record.run is None else record.run + EVIL, error=error)
        case Sample():
            named = {
                name: value + EVIL for name, value in record.labels.items() if name in {"namespace", "volume", "node"}
            }
            return replace(record, labels={**record.labels, **named})
        case Event(kind="Run" | "Node"):
            return replace(
                record, object=record.object + EVIL, run=record.run and record.run + EVIL, message=record.message + EVIL
            )
        case _:
            return replace(record, run=record.run and record.run + EVIL, message=record.message + EVIL)


@pytest.fixture(scope="module")
def report_of(tmp_path_factory):
    """The folder and the result of an injected fault, its texts hostile."""

    @cache
    def made(name):
        story = INJECTED[name]()
        story.records = [forged(record) for record in story.records]
        story.slos = ("p95(run.duration) < 20m",)
        folder = story.write(tmp_path_factory.mktemp("runs"))
        plan = folder.read_plan()
        options = {**plan.target_options, "namespace": "a" + EVIL, "other": EVIL}
        folder.write_plan(
            replace(plan, target=plan.target + EVIL, host=EVIL, target_options=options, command=("locust", EVIL))
        )
        return folder, rebuild(folder)

    return made
