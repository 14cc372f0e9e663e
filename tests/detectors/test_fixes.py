"""The fix of a finding works: the platform is tested, the commands run, and it is tested again."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from harness.analysis.timeline import Timeline
from harness.detectors import diagnose
from harness.simulator.profile import Quota
from harness.simulator.profile.file import load_profile
from harness.simulator.profile.store_products import StoreProduct
from tests.support.injection.packages import PACKAGE
from tests.support.rehearsal import Rehearsal

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@dataclass(frozen=True)
class FaultCase:
    """An injected fault under a load, and what an operator does besides running the commands.

    Attributes:
        fault: its name and strength; the finding has the same name.
        editor: what is done to a file that `kubectl edit` opens.
        more: commands for a remedy that only the cloud's own tools have.
        product: of the artifact store.
    """

    fault: str
    runs: int = 90
    over_s: float = 60.0
    editor: str = ""
    more: tuple[str, ...] = ()
    product: StoreProduct = StoreProduct.SEAWEEDFS

    @property
    def name(self) -> str:
        """The name of the fault and of its finding."""
        return self.fault.partition(":")[0]


_MORE_NODES = ("kubectl scale machinedeployment steps -n kube-system --replicas=16",)
CASES = {
    f"{each.name}-{each.product}": each
    for each in (
        FaultCase("store-full", 200, 100.0),
        FaultCase("store-full", 200, 100.0, product=StoreProduct.MINIO),
        FaultCase("quota", editor="""sed -i 's/requests.cpu: "4"/requests.cpu: "400"/'"""),
        FaultCase("nodes-exhausted", 120, 40.0, more=_MORE_NODES),
        FaultCase("autoscaler-at-max", 160, 40.0, more=_MORE_NODES),
        FaultCase("parallelism-cap", 180, editor="sed -i '/^  parallelism:/d'"),
        FaultCase("api-throttled", 100, 5.0),
        FaultCase("controller-backlog"),
        FaultCase("db-full"),
        FaultCase("db-connections"),
        FaultCase("store-unreachable-from-old-nodes:0.5"),
    )
}
_EVERY_TIME = {"store-full-seaweedfs", "quota-seaweedfs"}  # the others are told by the long tests


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(each, id=name, marks=() if name in _EVERY_TIME else pytest.mark.soak)
        for name, each in CASES.items()
    ],
)
def test_the_finding_is_gone_after_its_commands_have_run(case: FaultCase, tmp_path: Path) -> None:
    profile = load_profile("demo")
    profile = replace(profile, store=replace(profile.store, product=case.product))
    rehearsal = Rehearsal(profile)
    rehearsal.inject(case.fault)
    before = {each.name: each for each in diagnose(rehearsal.load(case.runs, case.over_s)).findings}
    assert case.name in before
    with rehearsal.shell(tmp_path) as shell:
        for command in (*before[case.name].commands, *case.more):
            done = shell.run(command, case.editor)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    after = {each.name: each.title for each in diagnose(rehearsal.load(case.runs, case.over_s)).findings}
    assert case.name not in after, after


@pytest.mark.soak  # the SDK takes seconds to come
def test_steps_with_the_recommended_memory_are_not_killed(tmp_path: Path) -> None:
    """A killed step hides the steps after it: the pipeline's author may have to raise the memory of each in turn."""
    rehearsal, package, told = Rehearsal(load_profile("demo")), PACKAGE, list[str]()
    rehearsal.inject("oom")
    while commands := commands_of("oom", rehearsal.load(60, 60.0, package)):
        assert not set(commands) & set(told), "what was said before did not help"
        told += commands
        package = rewritten(package, commands, tmp_path)
    assert told


def commands_of(name: str, timeline: Timeline) -> tuple[str, ...]:
    """The commands of the finding of that name; none without it."""
    return next((each.commands for each in diagnose(timeline).findings if each.name == name), ())


def rewritten(package: bytes, commands: Sequence[str], folder: Path) -> bytes:
    """The pipeline with the commands applied to the tasks they name."""
    spec = yaml.safe_load(package)
    for command in commands:
        task = command.partition(".")[0]
        resources = spec["deploymentSpec"]["executors"][f"exec-{task}"]["container"]["resources"]
        resources |= compiled(command, task, folder / "rewritten.yaml")
    return yaml.safe_dump(spec).encode()


def compiled(command: str, task: str, path: Path) -> dict[str, object]:
    """A task's resources as the SDK compiles them."""
    from kfp import compiler, dsl

    @dsl.container_component
    def step() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="none", command=["true"])

    @dsl.pipeline(name="rewritten")
    def pipeline() -> None:
        eval(command, {task: step()})

    compiler.Compiler().compile(pipeline, str(path))
    (made,) = yaml.safe_load(path.read_text())["deploymentSpec"]["executors"].values()
    found: dict[str, object] = made["container"]["resources"]
    return found


def test_without_the_commands_the_finding_stays(tmp_path: Path) -> None:
    rehearsal = Rehearsal(load_profile("demo"))
    rehearsal.inject("quota")
    assert "quota" in {each.name for each in diagnose(rehearsal.load(90, 60.0)).findings}
    with rehearsal.shell(tmp_path) as shell:
        assert shell.run("kubectl get nodes").returncode == 0
    assert rehearsal.platform.controller.quotas.shared.limits == Quota(cpu=4.0)
    assert "quota" in {each.name for each in diagnose(rehearsal.load(90, 60.0)).findings}
