"""The Kubernetes API answers questions about proxies, rights and versions as recorded, but for what is listed.

Reads, watches and writes are compared with a real API server, where there is one, in tests/simulator/kube_api.
"""

import json
from pathlib import Path

import pytest
import yaml

from harness.simulator.profile.file import parse_profile
from tests.support.conformance import RECORDED, Answer, Replay
from tests.support.skipping import skippable

ANSWERS = json.loads((RECORDED / "kubernetes.json").read_text())["answers"]
TABLE = yaml.safe_load(Path(__file__).with_name("differences.yaml").read_text())["kubernetes"]
PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
# The recorded cluster had no such service at first; the simulated one has it from the beginning.
ABSENT = {"service proxy, no such service": {"ml-pipeline": "no-pipeline"}}
PROFILE = "pools: [{name: pool, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1}]"


@pytest.fixture(scope="module")
def differing() -> list[str]:
    """The questions that the simulator answers differently."""
    with skippable(parse_profile(PROFILE, "the profile", "conformance")) as platform:
        return [each["label"] for each in ANSWERS if not _agrees(platform.url, each)]


def _agrees(url: str, question: dict[str, object]) -> bool:
    replay = Replay(url, "", ABSENT.get(str(question["label"]), {}))
    path, _, query = str(question["path"]).partition("?")
    parameters = dict(part.split("=", 1) for part in query.split("&") if part)
    if "watch" in parameters:
        parameters["timeoutSeconds"] = "1"
    answered = replay.ask({"method": question["method"], "path": path, "query": parameters})
    recorded = question["answer"]
    assert isinstance(recorded, dict)
    if "message" not in recorded:
        return answered == Answer(recorded["status"], answered.content_type, recorded["body"])
    body = answered.body if isinstance(answered.body, dict) else {}
    said = (answered.status, body.get("reason"), body.get("message"))
    return said == (recorded["status"], recorded["reason"], replay.here(recorded["message"]))


def test_answers_agree_but_for_the_listed_differences(differing: list[str]) -> None:
    assert sorted(differing) == sorted(label for row in TABLE for label in row["answers"])


def test_the_documentation_lists_the_differences() -> None:
    count = sum(len(row["answers"]) for row in TABLE)
    first = f"{count} of {len(ANSWERS)} recorded answers of a real Kubernetes API server on proxies, rights and versions differ:\n"
    text = "\n".join((first, *(f"* {row['reason']} ({len(row['answers'])})" for row in TABLE)))
    assert text in PAGE.read_text(), text
