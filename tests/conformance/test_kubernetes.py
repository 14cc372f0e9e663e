"""A Kubernetes API answers questions about proxies, missing types and versions as a real one was recorded to.

Reads, watches and writes are compared with a real API server, where there is one, in tests/simulator/kube_api.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.simulator.profile.file import parse_profile
from tests.support.conformance import RECORDED, Answer, Comparison, Replay
from tests.support.skipping import skippable

ANSWERS = json.loads((RECORDED / "kubernetes.json").read_text())["answers"]
TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())["kubernetes"]
PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
# The recorded cluster had no such service at first; the simulated one has it from the beginning.
ABSENT = {"service proxy, no such service": {"ml-pipeline": "no-pipeline"}}
PROFILE = """
pools: [{name: pool, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]
metrics_server: false
"""
NO_REPLICAS = {"metadata": {"name": "ml-pipeline", "namespace": "kubeflow"}, "spec": {"replicas": 0}}
# What an administrator did before a question.
DONE = {
    "service proxy, service without endpoints": [
        ("PUT", "/apis/apps/v1/namespaces/kubeflow/deployments/ml-pipeline/scale", NO_REPLICAS)
    ],
}
Found = dict[str, dict[str, str]]  # what differs: by question, by place


@pytest.fixture(scope="module")
def found() -> Found:
    """What the simulator answers differently."""
    with skippable(parse_profile(PROFILE, "the profile", "conformance")) as platform:
        return asked(platform.url, platform.skip)


def asked(url: str, skip: Callable[[float], None]) -> Found:
    """Ask everything in order."""
    replay, found = Replay(url, ""), {}
    for each in ANSWERS:
        label = each["label"]
        replay.names = ABSENT.get(label, {})
        for method, path, body in DONE.get(label, ()):
            question = {"method": method, "path": path, "body": body, "content_type": "application/json"}
            answer = replay.ask(question | {"headers": {}})
            assert answer.status in (200, 201), answer
            skip(60.0)
        path, _, query = each["path"].partition("?")
        parameters = dict(part.split("=", 1) for part in query.split("&") if part)
        answered = replay.ask({**each, "path": path, "query": parameters, "headers": {}})
        found[label] = _differences(each["answer"], answered, replay.here)
    return found


def _differences(recorded: Mapping[str, Any], answered: Answer, here: Callable[[str], str]) -> dict[str, str]:
    """Content types were not recorded; of what kubectl printed, only reason and message."""
    body = recorded.get("body", {key: recorded[key] for key in ("reason", "message") if key in recorded})
    said = answered.body
    if "body" not in recorded and isinstance(said, dict):
        said = {key: said[key] for key in body if key in said}
    expected = {"status": recorded["status"], "content_type": answered.content_type, "body": _unnumbered(body)}
    comparison = Comparison(here, {}, frozenset(), None)
    return comparison.differences(expected, Answer(answered.status, answered.content_type, _unnumbered(said)))


def _unnumbered(body: Any) -> Any:
    """Without the versions of objects, which are a cluster's own."""
    return json.loads(re.sub(r"\(\d+\)", "(version)", json.dumps(body)))


def test_answers_agree_but_for_the_listed_differences(found: Found) -> None:
    differing = {(label, at) for label, places in found.items() for at in places}
    listed = {(label, at) for row in TABLE for label in row["answers"] for at in row["at"]}
    assert differing == listed, {label: places for label, places in found.items() if places}


def test_the_documentation_lists_the_differences(found: Found) -> None:
    agreeing = sum(not places for places in found.values())
    first = (
        f"{agreeing} of {len(ANSWERS)} recorded answers of a real Kubernetes API server (1.36) on proxies, "
        "missing types and versions agree. The others:\n"
    )
    rows = [f"* {row['reason']} ({', '.join(row['answers'])})" for row in TABLE]
    text = "\n".join((first, *rows))
    assert text in PAGE.read_text(), text
