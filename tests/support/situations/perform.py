"""Performs a situation with Locust as a user starts it, and says what the report named first."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from harness.cli.look.rebuilding import rebuild
from harness.store import RunFolder
from tests.support.e2e import ROOT, Locust
from tests.support.prometheus_server import prometheus_with
from tests.support.real_kubernetes import RealCluster
from tests.support.real_parts.checks import Check, Folder, check_pods, check_runs
from tests.support.situations.situation import Place, Situation, arguments, placed

SURE = 0.8
_DOUBTS = frozenset({  # findings about the test, which claim nothing about the platform
    "generator-lag", "missed-arrivals", "too-few-samples", "observer-gaps", "censoring", "clock-skew",
    "inconsistent-records",
})  # fmt: skip
_AT_MOST_S = 400.0


@dataclass(frozen=True)
class Told:
    """What a report said.

    Attributes:
        findings: (name, confidence, title), in its order.
        verdict: whether the test was valid.
        observed: what the test measured, in a line.
    """

    findings: tuple[tuple[str, float, str], ...]
    verdict: str
    observed: str

    @property
    def first(self) -> str:
        """The first finding's name; "nothing" without one."""
        return self.findings[0][0] if self.findings else "nothing"

    def is_right(self, situation: Situation) -> bool:
        """Whether the first finding is the truth; without one to be found, whether nothing is claimed."""
        if not situation.first:
            return not self.false(situation)
        if not self.findings or not _among(self.first, situation.first):
            return False
        return bool(re.search(situation.says, self.findings[0][2], re.IGNORECASE))

    def false(self, situation: Situation) -> list[str]:
        """What is claimed at 80 % or more, and is not so."""
        true = (*situation.first, *situation.also, *_DOUBTS)
        return [name for name, confidence, _ in self.findings if confidence >= SURE and not _among(name, true)]


def _among(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, each) for each in patterns)


@dataclass(frozen=True)
class Outcome:
    """A situation that was performed: what was said with Prometheus and without.

    `errors` are of the rig; `checks` hold the records of one of the short form against what its kubelet did.
    """

    situation: Situation
    folder: Path | None
    with_metrics: Told | None
    without: Told | None
    errors: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def told(self) -> list[Told]:
        """The reports."""
        return [each for each in (self.with_metrics, self.without) if each]

    @property
    def is_right(self) -> bool:
        """Whether every report is right, and there is one."""
        return bool(self.told) and not self.errors and all(each.is_right(self.situation) for each in self.told)


def perform(
    situation: Situation, cluster: RealCluster, folder: Path, *, prometheus: bool = True, keep: Path | None = None
) -> Outcome:
    """Make it happen; its files are in `folder`, and the run folder is kept in `keep`."""
    with placed(situation, cluster, folder) as place, ExitStack() as stack:
        manifest = folder / "workflow.yaml"
        manifest.write_text(yaml.safe_dump(situation.workflow()))
        given = [*arguments(situation, place, manifest)]
        if prometheus:
            given += ["--prometheus", stack.enter_context(prometheus_with(folder, _scrapes(place)))]
        if situation.ready:
            situation.ready(place)
        locust = Locust(folder)
        locust.locustfile = ROOT / "locustfiles/argo.py"
        process = locust.start("--headless", *given, KUBECONFIG=str(cluster.kubeconfig))
        if situation.during:
            place.begin(situation.during)
        finished = locust.finish(process, _AT_MOST_S)
        place.over.set()
        errors = list(place.errors)
        checks = tuple(_checks(place, finished.folder, situation.runs)) if situation.short and finished.folder else ()
    if finished.folder is None or not (finished.folder / "report.json").exists():
        return Outcome(situation, None, None, None, (*errors, finished.err[-2000:]))
    if keep is not None:
        shutil.copytree(finished.folder, keep / situation.name, dirs_exist_ok=True)
    told = read(json.loads((finished.folder / "report.json").read_text()))
    without = said(without_metrics(finished.folder, folder / "without")) if prometheus else told
    return Outcome(situation, finished.folder, told if prometheus else None, without, tuple(errors), checks)


def _checks(place: Place, path: Path, runs: int) -> Iterator[Check]:
    folder, steps = Folder(path), {each["metadata"]["name"] for each in place.pods()}
    workflows = place.kube.get(f"/apis/argoproj.io/v1alpha1/namespaces/{place.namespace}/workflows")["items"]
    states = {
        each["metadata"]["name"]: {"state": each.get("status", {}).get("phase", "").upper()} for each in workflows
    }
    yield from check_runs(folder, folder.lengths(), states, runs)
    yield from check_pods(folder, {name: lived for name, lived in place.kubelet.pods.items() if name in steps})


def judged(situation: Situation, recorded: Path, place: Path) -> Outcome:
    """What today's detectors say of a run folder that was kept; copies are written below `place`."""
    folder = place / situation.name
    shutil.copytree(recorded / situation.name, folder)
    return Outcome(situation, folder, said(folder), said(without_metrics(folder, place / "without" / situation.name)))


def said(folder: Path) -> Told:
    """What a run folder's report says, written anew as at the end of a test: ranked by what fixes would bring."""
    rebuild(RunFolder.open(folder), what_if=True)
    return read(json.loads((folder / "report.json").read_text()))


def read(report: Mapping[str, Any]) -> Told:
    """What a ``report.json`` says."""
    findings = tuple((each["name"], each["confidence"], each["title"]) for each in report["findings"])
    ledger, phases = report["ledger"], report["phases"]["phases"]
    most = sorted(phases, key=lambda each: -(each["share"] or 0))[:3]
    shares = ", ".join(f"{each['name']} {each['share'] or 0:.0%}" for each in most)
    length = report["phases"]["mean_total_s"]
    lasted = f"; {length:.0f} s a run: {shares}" if length else ""
    ends = " · ".join(
        f"{ledger[key]} {key.replace('_', ' ')}" for key in ("succeeded", "failed", "in_flight") if ledger[key]
    )
    return Told(findings, report["validity"]["verdict"], f"{ends}{lasted}")


def without_metrics(folder: Path, place: Path) -> Path:
    """The same run as an observer without Prometheus would have recorded it."""
    shutil.copytree(folder, place)
    (place / "samples.jsonl").unlink(missing_ok=True)
    shutil.rmtree(place / "tables")
    manifest = place / "manifest.json"
    plan = json.loads(manifest.read_text())
    plan["observer"]["prometheus"] = ""
    manifest.write_text(json.dumps(plan))
    return place


def _scrapes(place: Place) -> list[Mapping[str, object]]:
    """As an installation's Prometheus finds them: with the labels of namespace and pod."""
    controller = {"targets": [f"127.0.0.1:{place.controller.port}"]}
    labels = {"namespace": place.namespace, "pod": place.controller.pod, "container": "workflow-controller"}
    server = {
        "scheme": "https", "authorization": {"credentials": place.cluster.token},
        "tls_config": {"ca_file": str(place.cluster.ca)},
        "static_configs": [{"targets": [place.cluster.url.rpartition("//")[2]]}],
    }  # fmt: skip
    etcd = {"static_configs": [{"targets": [place.cluster.etcd_url.rpartition("//")[2]]}]}
    jobs: list[tuple[str, Mapping[str, object]]] = [
        ("workflow-controller", {"static_configs": [{**controller, "labels": labels}]}),
        ("apiserver", server),
        ("etcd", etcd),
    ]
    return [{"job_name": name, "scrape_interval": "5s", **how} for name, how in jobs]
