import json
import shlex

import pytest

from harness.detectors import diagnose
from harness.detectors.stores.store_full import NAME, detect
from harness.detectors.stores.store_unreachable import NAME as UNREACHABLE
from harness.model.phases import FAILED, LAUNCHER_ERROR, STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES, STORE_FULL
from tests.support.timelines import GIB, STORE_MESSAGE, Story, burst

SAYINGS = (
    "failed to put file: 507 Insufficient Storage",
    "XMinioStorageFull: Storage backend has reached its minimum free drive threshold",
    "write /data/1.dat: no space left on device",
    "QuotaExceeded: 403 Forbidden",
    "assign volume: no free volumes left for collection",
)


def failing(message, *, volume=None, count=40, named=None):
    """The second half of the runs fails with a message; the volume's free share falls to `volume`."""
    story = Story(intended=count)
    for seq in range(count):
        bad = seq >= count // 2
        run = story.submit(seq)
        story.run(run, 0.0, float(seq + 1), FAILED if bad else "SUCCEEDED", message.format(run=run) if bad else "")
        if volume is not None:
            free = max(volume, 1 - seq / (count / 2 - 2))
            labels = named or {"volume": "minio-pvc", "namespace": "ml"}
            story.sample(seq + 0.5, STORE_CAPACITY_BYTES, 20 * GIB, **labels)
            story.sample(seq + 0.5, STORE_AVAILABLE_BYTES, 20 * GIB * free, **labels)
    return story


def test_a_full_volume_and_the_stores_own_error_are_the_top_finding(tmp_path):
    top = diagnose(burst(store_full_from=0.6).timeline(tmp_path)).findings[0]
    assert top.name == NAME
    assert top.confidence > 0.95
    assert top.title == "The artifact store ran out of space (seaweedfs-pvc): 40% of the runs failed because of it"
    said = " ".join(e.statement for e in top.evidence)
    assert "80 of 80 failed runs" in said
    assert "fell to 0 B of 10.0 GiB" in said
    assert "before the first such failure" in said


def test_the_evidence_says_how_many_of_the_counted_runs_only_show_an_exit_code(tmp_path):
    story = failing("container main ended with exit code 1", volume=0.0)
    for seq in range(20, 36):
        story.event(60.0, "Pod", f"pod-{seq}", LAUNCHER_ERROR, STORE_MESSAGE, run=f"run-{seq:04}")
    (finding,) = detect(story.timeline(tmp_path))
    said = [each.statement for each in finding.evidence]
    assert said[0].startswith("16 of 20 failed runs could not write their outputs")
    assert said[1] == "50.0% of all runs failed this way, counting 4 whose logs were not read"
    assert ": 50% of the runs failed because of it" in finding.title


def test_a_store_that_has_not_rejected_writes_yet_is_nearly_full(tmp_path):
    (finding,) = detect(failing("", volume=0.01).timeline(tmp_path))
    assert finding.title == "The artifact store is nearly full (minio-pvc)"


def test_the_commands_have_the_clusters_names_and_a_sufficient_size(tmp_path):
    (finding,) = detect(failing(STORE_MESSAGE, volume=0.0).timeline(tmp_path))
    down, patch, up, status = finding.commands
    assert down == "kubectl scale deployment minio -n ml --replicas=0"
    assert up == "kubectl scale deployment minio -n ml --replicas=1"
    assert status == "kubectl rollout status deployment minio -n ml"
    words = shlex.split(patch)
    assert words[:6] == ["kubectl", "patch", "pvc", "minio-pvc", "-n", "ml"]
    wanted = json.loads(words[7])["spec"]["resources"]["requests"]["storage"]
    assert wanted == "100Gi"  # twice what 40 runs need when 20 filled 20 GiB: 80 GiB, rounded up


@pytest.mark.parametrize(
    ("labels", "claim"),
    [({"volume": "minio"}, "minio-pvc"), ({"volume": "seaweedfs", "disk": "/data"}, "seaweedfs-pvc")],
)
def test_a_stores_own_disk_metrics_suffice_and_its_claim_is_guessed(tmp_path, labels, claim):
    (finding,) = detect(failing(STORE_MESSAGE, volume=0.0, named=labels).timeline(tmp_path))
    assert finding.confidence > 0.95
    assert f"({labels['volume']})" in finding.title
    look, down, patch, *_ = finding.commands
    assert look.startswith("kubectl get pvc")
    assert f"deployment {claim.removesuffix('-pvc')} " in down
    assert f"pvc {claim} " in patch


def test_the_nodes_the_steps_ran_on_are_replaced(tmp_path):
    (finding,) = detect(burst(60, store_full_from=0.5).timeline(tmp_path))
    assert finding.commands[-1] == (
        "kubectl drain node-0 node-1 node-2 node-3 --ignore-daemonsets --delete-emptydir-data "
        "--pod-selector='workflows.argoproj.io/completed!=true'"
    )


@pytest.mark.parametrize("saying", SAYINGS)
def test_each_stores_error_text_for_full_is_known(tmp_path, saying):
    (finding,) = detect(failing(saying).timeline(tmp_path))
    assert finding.confidence >= 0.9
    assert finding.commands[0].startswith("kubectl get pvc")  # the volume was not seen: look first


def test_failed_writes_with_free_space_on_the_volume_are_not_a_full_store(tmp_path):
    message = "failed to save outputs: unable to write outputs: timed out waiting for the condition"
    assert detect(failing(message, volume=0.6).timeline(tmp_path)) == []


@pytest.mark.parametrize(("free", "first"), [(None, UNREACHABLE), (0.6, UNREACHABLE), (0.0, NAME)])
def test_an_unreachable_store_is_not_full_unless_its_volume_is(free, first, tmp_path):
    dialled = "unable to write outputs: Put http://minio:9000/: dial tcp 10.0.0.7:9000: connect: connection refused"
    findings = diagnose(failing(dialled, volume=free).timeline(tmp_path)).findings
    assert findings[0].name == first
    assert {UNREACHABLE, NAME}.intersection(finding.name for finding in findings) == {first}


@pytest.mark.parametrize(
    ("volume", "sure", "title"),
    [(0.05, 0.5, "the artifact store is full or fails"), (0.6, 0.5, "full or fails"), (0.01, 0.98, "ran out of space")],
)
def test_a_store_that_answers_with_a_bare_error_is_neither_unreachable_nor_left_unnamed(volume, sure, title, tmp_path):
    error = "failed to upload output artifact: https response error StatusCode: 500, api error InternalError: try again"
    findings = diagnose(failing(error, volume=volume).timeline(tmp_path)).findings
    assert [each.name for each in findings] == [NAME]
    assert findings[0].confidence == pytest.approx(sure)
    assert title in findings[0].title


def test_other_failures_and_clean_runs_are_not_a_full_store(tmp_path):
    assert detect(failing("OOMKilled: container main exceeded its memory limit").timeline(tmp_path)) == []
    assert detect(burst(40).timeline(tmp_path)) == []


def test_without_any_run_observed_it_is_not_judged(tmp_path):
    story = Story(intended=1)
    story.submit(0)
    silent = {s.name: s.reason for s in diagnose(story.timeline(tmp_path)).not_judged}
    assert silent[NAME] == "no run was observed on the platform"


def test_a_rejected_probe_of_our_own_suffices(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 5.0)
    story.event(3.0, "ObjectStore", "mlpipeline", STORE_FULL, "PUT answered 403 QuotaExceeded")
    (finding,) = detect(story.timeline(tmp_path))
    assert finding.confidence >= 0.9
    assert any("403 QuotaExceeded" in evidence.statement for evidence in finding.evidence)
