"""Karpenter's NodeClaims, by their conditions as its documentation and its users' issues show them."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.node_claims import NodeClaims
from harness.model import Event, Sample
from harness.store import RunFolder
from tests.support.manifests import at, time

NOT_REGISTERED = ("Registered", "Unknown", "NodeNotFound", "Node not registered with cluster")
WAITING = ("Initialized", "Unknown", "AwaitingReconciliation", "object is awaiting reconciliation")
LAUNCHED = ("Launched", "True", "Launched", "")
UNAVAILABLE = "Error creating NodeClaim: all requested instance types were unavailable during launch"


def reached(*names: str) -> list[tuple[str, str, str, str]]:
    return [(name, "True", name, "") for name in names]


def claim(*conditions: tuple[str, str, str, str], name: str = "default-26pwv") -> dict[str, Any]:
    listed = [
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time(10 + k)}
        for k, (kind, status, reason, message) in enumerate(conditions)
    ]
    return {
        "metadata": {"name": name, "creationTimestamp": time(5), "labels": {"karpenter.sh/nodepool": "default"}},
        "status": {"conditions": listed},
    }


class Scene:
    def __init__(self, path: Path, since: float = 0.0) -> None:
        self.folder = RunFolder(path)
        journal = Journal(self.folder.recorder(), now=lambda: at(100))
        self.claims = NodeClaims(journal, at(since), self.folder.records(Event))

    def told(self) -> list[tuple[str, str, str]]:
        return [(each.reason, each.message, each.type) for each in self.folder.records(Event)]

    def coming(self) -> list[float]:
        return [each.value for each in self.folder.records(Sample) if each.metric == "coming_nodes"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_claim_is_recorded_stage_by_stage_and_is_on_its_way_until_it_is_initialized(scene: Scene) -> None:
    scene.claims.see("ADDED", claim())
    assert scene.claims.coming == 1
    scene.claims.see("MODIFIED", claim(LAUNCHED, NOT_REGISTERED, WAITING))
    scene.claims.see("MODIFIED", claim(*reached("Launched", "Registered"), WAITING))
    scene.claims.see("MODIFIED", claim(*reached("Launched", "Registered", "Initialized", "Ready", "Consolidatable")))
    scene.claims.see("MODIFIED", claim(*reached("Launched", "Registered", "Initialized")))
    assert [reason for reason, *_ in scene.told()] == ["Created", "Launched", "Registered", "Initialized"]
    assert [each.at for each in scene.folder.records(Event)] == [at(5), at(10), at(11), at(12)]
    assert (scene.claims.coming, scene.coming()) == (0, [1.0, 0.0])


def test_a_launch_that_fails_says_why_each_reason_once(scene: Scene) -> None:
    for _ in range(3):
        scene.claims.see("MODIFIED", claim(("Launched", "Unknown", "LaunchFailed", UNAVAILABLE)))
    assert scene.told()[1:] == [("NodeClaimFailed", f"LaunchFailed: {UNAVAILABLE}", "Warning")]
    assert scene.claims.coming == 1  # Karpenter tries again


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ([], "deleted before it was launched"),
        ([("Launched", "Unknown", "AwaitingReconciliation", "")], "deleted before it was launched"),
        (
            [LAUNCHED, NOT_REGISTERED],
            "deleted before it was registered: NodeNotFound: Node not registered with cluster",
        ),
    ],
)
def test_a_claim_that_goes_before_its_node_is_there_has_failed(
    before: list[tuple[str, str, str, str]], why: str, scene: Scene
) -> None:
    scene.claims.see("ADDED", claim(*before))
    scene.claims.see("DELETED", claim())
    assert scene.told()[-1] == ("NodeClaimFailed", why, "Warning")
    assert (scene.claims.coming, scene.coming()) == (0, [1.0, 0.0])


def test_a_machine_that_is_removed_later_has_not_failed(scene: Scene) -> None:
    scene.claims.see("ADDED", claim(*reached("Launched", "Registered", "Initialized")))
    scene.claims.see("DELETED", claim())
    assert "NodeClaimFailed" not in {reason for reason, *_ in scene.told()}
    assert scene.coming() == []


def test_claims_of_before_the_test_are_not_recorded_and_nothing_is_twice(tmp_path: Path) -> None:
    early = Scene(tmp_path / "early", since=1000.0)
    early.claims.see("ADDED", claim(*reached("Launched", "Registered", "Initialized")))
    assert early.told() == []
    Scene(tmp_path).claims.see("ADDED", claim(LAUNCHED))
    again = Scene(tmp_path)
    again.claims.see("ADDED", claim(LAUNCHED))
    assert [reason for reason, *_ in again.told()] == ["Created", "Launched"]
