"""Tenants that each start a Dask cluster of their own, scale it to their width, compute, and close it.

On this machine each is one process that runs `session`, and its cluster is a `LocalCluster` with a process per worker;
Dask is imported there only. On Kubernetes the clusters are the Dask operator's; see `kube`.
"""

import sys
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from math import ceil

from harness.model.errors import ConfigError
from harness.model.http import Exchange
from harness.model.options import Option
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets.command import demand_processes, run_process
from harness.targets.completed_run import CompletedRun
from harness.targets.dask_tenants.kube import KubeTenants
from harness.targets.dask_tenants.objects import CLUSTER, Recipe, resources_of
from harness.targets.scenarios import Input, InputType, as_cell
from harness.targets.target import PROCESSES, Prepared, SetUp

__all__ = ["DEFAULTS", "HOST_VARIABLE", "OPTIONS", "DaskTenants", "from_plan", "own_host", "prepare"]

_LOCAL, _KUBE = "local", "kube"
OPTIONS = (
    Option(
        "cluster", _LOCAL, "where clusters run · local: on this machine · kube: in Kubernetes, by the Dask operator",
        choices=(_LOCAL, _KUBE),
    ),
    Option("image", "ghcr.io/dask/dask:latest", "with --cluster kube: image of schedulers, workers and stages"),
    Option("resources", "cpu=1,memory=2Gi", "with --cluster kube: of each scheduler and worker; add nvidia.com/gpu=1"),
    Option("worker-command", "dask-worker", "with --cluster kube: what workers run, such as dask-cuda-worker"),
)  # fmt: skip
DEFAULTS = {"simulate": "dask-gpu", "host": PROCESSES, "answer-timeout": "15m", "max-in-flight": "100"}
HOST_VARIABLE = ""

_TITLE = "dask_tenants"
_INPUTS = (
    Input("width", InputType.INTEGER, required=False, default=2),
    Input("tasks", InputType.INTEGER, required=False, default=8),
    Input("task_s", InputType.DOUBLE, required=False, default=0.25),
    Input("variation", InputType.DOUBLE, required=False, default=0.0),
)


def own_host(texts: Mapping[str, str]) -> str:
    """The address of clusters on this machine; "" for others, which the user gives; see `Platform`."""
    return PROCESSES if texts.get("cluster") in {"", None, _LOCAL} else ""


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:  # noqa: ARG001  # see `Platform.prepare`
    """Check the options, and that Dask is there where it runs here; see `Platform.prepare`."""
    if texts["cluster"] == _KUBE:
        resources_of(texts["resources"])
        if not texts["worker-command"].split():
            raise ConfigError("--worker-command is empty", "write it as dask-worker, or leave it out")
        kept = {name: texts[name] for name in ("cluster", "image", "resources", "worker-command", "namespace")}
        return Prepared({**kept, "observed": texts["namespace"]}, _TITLE, _INPUTS)
    if find_spec("distributed") is None:
        raise ConfigError("Dask is not installed", "pip install 'pipeswarm[dask]'")
    return Prepared({}, _TITLE, _INPUTS)


def from_plan(plan: Plan, package: bytes | None = None) -> "DaskTenants | KubeTenants":  # noqa: ARG001  # see `Platform`
    """The target of a plan."""
    time_limit_s = plan.limits.answer_timeout_s
    # An observation names only what its user gives; a load has all options.
    named = {option.name: str(option.default) for option in OPTIONS} | {"namespace": "", "observed": ""}
    options = named | {name: str(value) for name, value in plan.target_options.items()}
    if options.get("cluster") != _KUBE:
        return DaskTenants(time_limit_s)
    recipe = Recipe(
        options["image"], resources_of(options["resources"]), tuple(options["worker-command"].split()), plan.id,
        idle_timeout_s=ceil(time_limit_s),
    )  # fmt: skip
    namespace = options.get("own_namespace") or options["namespace"] or "default"
    return KubeTenants(recipe, namespace, options["observed"], _INPUTS, time_limit_s)


class DaskTenants:
    """Sessions of tenants; each may take `time_limit_s` seconds."""

    pod_label = CLUSTER

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s

    def set_up(self, exchange: Exchange) -> SetUp:
        """Nothing is needed but an exchange that runs processes; see `Target.set_up`."""
        demand_processes(exchange)
        return SetUp({}, _INPUTS)

    def submit(self, scenario: Scenario, exchange: Exchange) -> CompletedRun:
        """One session; see `Target.submit`."""
        values = {each.name: each.default for each in _INPUTS} | dict(scenario.values)
        given = [f"--{name.replace('_', '-')}={as_cell(value)}" for name, value in values.items()]
        argv = [sys.executable, "-P", "-m", f"{__package__}.session", *given]
        return run_process(exchange, argv, str(uuid.uuid4()), _TITLE, self._time_limit_s)
