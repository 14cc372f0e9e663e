"""What a finding says to do helps: the platform is tested, its commands are typed, and it is tested again."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.detectors import diagnose
from harness.simulator.profile import Quota
from harness.simulator.profile_file import load_profile
from harness.simulator.store_products import StoreProduct
from tests.detectors.rehearsal import Rehearsal

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@dataclass(frozen=True)
class Trouble:
    """A planted fault under a load, and what an operator does besides typing the commands.

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
        """Of the fault and of its finding."""
        return self.fault.partition(":")[0]


_MORE_NODES = ("kubectl scale machinedeployment steps -n kube-system --replicas=16",)
TROUBLES = {
    f"{each.name}-{each.product}": each
    for each in (
        Trouble("store-full", 200, 100.0),
        Trouble("store-full", 200, 100.0, product=StoreProduct.MINIO),
        Trouble("quota", editor="""sed -i 's/requests.cpu: "4"/requests.cpu: "400"/'"""),
        Trouble("nodes-exhausted", 120, 40.0, more=_MORE_NODES),
        Trouble("autoscaler-at-max", 160, 40.0, more=_MORE_NODES),
        Trouble("parallelism-cap", 180, editor="sed -i '/^  parallelism:/d'"),
        Trouble("api-throttled", 100, 5.0),
        Trouble("controller-backlog"),
        Trouble("db-full"),
        Trouble("db-connections"),
        Trouble("store-unreachable-from-old-nodes:0.5"),
    )
}
_EVERY_TIME = {"store-full", "quota", "nodes-exhausted"}  # the others are told by the long tests


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(each, id=name, marks=() if each.name in _EVERY_TIME else pytest.mark.soak)
        for name, each in TROUBLES.items()
    ],
)
def test_the_finding_is_gone_when_its_commands_have_been_typed(trouble: Trouble, tmp_path: Path) -> None:
    profile = load_profile("demo")
    profile = replace(profile, store=replace(profile.store, product=trouble.product))
    rehearsal = Rehearsal(profile)
    rehearsal.plant(trouble.fault)
    before = {each.name: each for each in diagnose(rehearsal.load(trouble.runs, trouble.over_s)).findings}
    assert trouble.name in before
    with rehearsal.shell(tmp_path) as shell:
        for command in (*before[trouble.name].commands, *trouble.more):
            done = shell.run(command, trouble.editor)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    after = {each.name: each.title for each in diagnose(rehearsal.load(trouble.runs, trouble.over_s)).findings}
    assert trouble.name not in after, after


def test_without_the_commands_the_finding_stays(tmp_path: Path) -> None:
    rehearsal = Rehearsal(load_profile("demo"))
    rehearsal.plant("quota")
    assert "quota" in {each.name for each in diagnose(rehearsal.load(90, 60.0)).findings}
    with rehearsal.shell(tmp_path) as shell:
        assert shell.run("kubectl get nodes").returncode == 0
    assert rehearsal.platform.controller.quota.limits == Quota(cpu=4.0)
    assert "quota" in {each.name for each in diagnose(rehearsal.load(90, 60.0)).findings}
