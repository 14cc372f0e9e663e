"""Identifies a platform: reads what a recorded test shows of it, then fits what it shows only by its effect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.analysis.timeline import Timeline
from harness.model.errors import ConfigError
from harness.model.phases import POD_CPU_CORES
from harness.planning.identify.executions import identified_service
from harness.planning.identify.fitting import fitted
from harness.planning.identify.nodes import with_nodes_of
from harness.planning.identify.recorded import RecordedTest, measures_of
from harness.planning.identify.reproduction import Measures, Reproduction, compare
from harness.planning.identify.services import with_services_of
from harness.planning.identify.setting import Setting
from harness.planning.identify.tasks import with_tasks_of
from harness.simulator.cluster import Change, NullListener, Pod
from harness.simulator.fast.submitting import is_argo, pipelines, workflows
from harness.simulator.kfp.errors import RpcError
from harness.simulator.platform import Platform
from harness.simulator.profile import Profile
from harness.simulator.workflows.workflow import Workflow

_LOOK_S = 3600.0
_LOCKS = b"synchronization:"  # a field of Argo's workflows: semaphores and mutexes


@dataclass(frozen=True, slots=True)
class Identified:
    """A platform identified from a recorded test.

    Attributes:
        profile: its settings.
        settings: those that were read or fitted, with where.
        recorded: what was measured of the test.
        simulated: the same of its simulation.
        reproduction: how they compare.
        images: of each task's pods.
        uses_known: whether the cores that pods use were measured, or executions' contention: then the model has them.
    """

    profile: Profile
    settings: tuple[Setting, ...]
    recorded: Measures
    simulated: Measures
    reproduction: Reproduction
    images: Mapping[str, tuple[str, ...]]
    uses_known: bool = True


def identify(timeline: Timeline, test: RecordedTest, profile: Profile | None = None) -> Identified:
    """Identify the platform of a recorded test, and check that its simulation reproduces the test.

    Args:
        timeline: of the recorded test.
        test: what was sent.
        profile: what the test does not show is its own; none is a plain installation's.

    Raises:
        ConfigError: the recorded pipeline can't be simulated.
    """
    usual = replace(profile or Profile("recorded"), faults=(), caching=False, tenants=())
    if timeline.executed:
        recorded = measures_of(timeline)
        model, settings, simulated = identified_service(usual, timeline, test, recorded)
        return Identified(model, tuple(settings), recorded, simulated, compare(recorded, simulated), {})
    try:
        pods = _pods_of_a_run(usual, test)
        model, nodes = with_nodes_of(usual, timeline, {task: pod.shape for task, pod in pods.items()})
        model, services = with_services_of(model, timeline, locks=_LOCKS in test.package)
        priorities = {tenant.namespace: tenant.priority for tenant in profile.tenants} if profile else {}
        tenants = (replace(tenant, priority=priorities.get(tenant.namespace, 0)) for tenant in model.tenants)
        model = replace(model, tenants=tuple(tenants))
        images = {task: pod.images for task, pod in pods.items()}
        model, tasks = with_tasks_of(model, timeline, images, _reads(pods))
        recorded = measures_of(timeline)
        model, simulated, fits = fitted(model, test, recorded)
    except RpcError as error:
        raise ConfigError(
            f"the recorded pipeline can't be simulated: {error.message}", "give its test again"
        ) from error
    known = bool(len(timeline.metric(POD_CPU_CORES)))
    settings = (*nodes, *services, *tasks, *fits)
    return Identified(model, settings, recorded, simulated, compare(recorded, simulated), images, known)


class _First(NullListener):
    """Keeps the first pod of each task."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        del change, detail
        self.pods.setdefault(pod.kind, pod)


def _pods_of_a_run(profile: Profile, test: RecordedTest) -> Mapping[str, Pod]:
    """The pods of one run on a platform with room for everything: what they request, and their images."""
    listener = _First()
    roomy = tuple(replace(pool, cpu=1e6, memory=1e15, gpu=1000, pods=1000) for pool in profile.pools)
    platform = Platform(replace(profile, pools=roomy, autoscaler=None), 0, listener)
    submit = (workflows if is_argo(test.package) else pipelines)(platform, test.package)
    submit(replace(test.arrivals[0].scenario, tenant=""), lambda _: None)
    platform.loop.run(_LOOK_S)
    return listener.pods


def _reads(pods: Mapping[str, Pod]) -> dict[str, list[str]]:
    """By task, the tasks whose outputs its pods read."""
    found = {}
    for task, pod in pods.items():
        assert isinstance(pod.owner, Workflow)
        plans = pod.owner.graph.plans
        found[task] = [plans[value].task for value in plans[pod.index].reads]
    return found
