"""Limits of the platform's services, as a recorded test shows them: API server, quotas, controller, store, agent."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from harness.analysis.capacity.acceptance import acceptance
from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.waits.controller_limit import Limit, symptoms
from harness.analysis.waits.quota_use import amounts_of, side_by_side
from harness.analysis.waits.quota_waits import refusals
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.workflow_limits import configured
from harness.model.errors import ConfigError
from harness.model.phases import (
    NAMESPACE_PARALLELISM,
    PARALLELISM,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    STORE_AVAILABLE_BYTES,
    STORE_CAPACITY_BYTES,
)
from harness.model.units import format_bytes, parse_quantity
from harness.planning.identify.setting import Setting, measured_amount
from harness.simulator.profile import Profile, Quota, Tenant

Read = tuple[Profile, Sequence[Setting]]

# Of a quota, and the metric of what pods request of each; pods themselves count one each.
_RESOURCES = {
    "cpu": REQUESTED_CPU_CORES, "memory": REQUESTED_MEMORY_BYTES, "nvidia.com/gpu": REQUESTED_GPUS, "pods": "",
}  # fmt: skip
_OTHERS = 0.05  # of a limit: stamps of whole seconds make that much of a difference
_UNLIMITED = 1e6  # requests per second: what was not seen to limit
_EARLY = 0.1  # quantile: an answer that waited for nothing


def with_services_of(profile: Profile, timeline: Timeline, *, locks: bool) -> tuple[Profile, Sequence[Setting]]:
    """The profile with the limits that were read; where workflows wait for `locks`, few run at once because of them."""
    settings: list[Setting] = []
    for read in (_api, _quotas, partial(_controller, locks=locks), _volume, _agent):
        profile, found = read(profile, timeline)
        settings += found
    return profile, settings


def _api(profile: Profile, timeline: Timeline) -> Read:
    runs = timeline.runs
    took = floats(runs, "answered_s") - floats(runs, "sent_s")
    took = took[np.isfinite(took)]
    if not took.size:
        return profile, []
    flow = acceptance(timeline)
    if flow is None:
        amount = measured_amount(took)
        api = replace(profile.api, latency=amount, qps=_UNLIMITED, burst=int(_UNLIMITED))
        return replace(profile, api=api), [Setting("api.latency", amount, "answers to submissions", took.size)]
    amount = measured_amount(took[took <= np.quantile(took, _EARLY)])
    setting = Setting("api.qps", f"{flow.rate:.3g}/s", "answers while submissions queued", flow.count)
    return replace(profile, api=replace(profile.api, latency=amount, qps=flow.rate, burst=1)), [setting]


def _quotas(profile: Profile, timeline: Timeline) -> Read:
    """What the quotas leave to the runs: other pods of their namespaces use them, too."""
    found, settings = defaultdict[str, dict[str, float]](dict), []
    for (tenant, resource), (seen, source) in _seen_quotas(timeline).items():
        at, hard, used = (np.array(each) for each in zip(*seen, strict=True))
        others = max(0.0, float(np.median(used - _own(timeline, tenant, resource, at))))
        others = round(others) if resource == "pods" else others * (others > _OTHERS * hard[-1])
        found[tenant][resource] = left = float(hard[-1]) - others
        of = f" of {tenant}" if tenant else ""
        beside = f" ({hard[-1]:g} less {others:.3g} of other pods)" if others else ""
        settings.append(Setting(f"quota.{resource}", f"{left:g}{of}{beside}", source))
    quotas = {tenant: _quota(got) for tenant, got in found.items()}
    tenants = tuple(Tenant(name, quota=quotas.get(name, Quota())) for name in timeline.plan.tenants)
    return replace(profile, quota=quotas.get("", Quota()), tenants=tenants), settings


def _seen_quotas(timeline: Timeline) -> dict[tuple[str, str], tuple[list[tuple[float, float, float]], str]]:
    """By tenant and resource: when, the limit and what was used of it; and where that was read."""
    found: dict[tuple[str, str], tuple[list[tuple[float, float, float]], str]] = {}
    for refusal in refusals(timeline):
        for name, texts in refusal.room.items():
            try:
                used, hard = map(parse_quantity, texts)
            except ConfigError:
                continue
            if (resource := name.removeprefix("requests.")) in _RESOURCES:
                found.setdefault((refusal.tenant, resource), ([], "refusals of pods"))[0].append(
                    (refusal.at_s, hard, used)
                )
    for (namespace, _, name), amounts in amounts_of(timeline):
        tenant = namespace if namespace in timeline.plan.tenants else ""
        rows = [*zip(*side_by_side(amounts), strict=True)]
        resource = name.removeprefix("requests.").removeprefix("count/")
        if rows and resource in _RESOURCES and (tenant or not timeline.plan.tenants):
            found[tenant, resource] = rows, "the quota's own amounts"
    return found


def _own(timeline: Timeline, tenant: str, resource: str, at: Floats) -> Floats:
    """What the pods of the runs use of a quota, at these instants."""
    mine = (timeline.runs["tenant"] == tenant).to_numpy(dtype=bool) if tenant else np.ones(len(timeline.runs), bool)
    pods = timeline.pods[np.append(mine, False)[timeline.pods["row"].to_numpy()]]
    pods = pods.assign(end_s=pods["end_s"].fillna(np.inf))
    each = pods.groupby("pod").agg(task=("task", "first"), begun=("start_s", "min"), ended=("end_s", "max"))
    metric = _RESOURCES[resource]
    asked = dict(requests_by(timeline, metric, "task")) if metric else {}
    amounts = each["task"].astype(str).map(asked).fillna(0.0).to_numpy() if metric else np.ones(len(each))
    begun, ended = floats(each, "begun"), floats(each, "ended")
    return np.array([amounts[(begun <= now) & (ended > now)].sum() for now in at])


def _quota(limits: Mapping[str, float]) -> Quota:
    cpu, memory, gpu, pods = (limits.get(name, 0.0) for name in ("cpu", "memory", "nvidia.com/gpu", "pods"))
    return Quota(cpu, memory, int(gpu), int(pods))


def _controller(profile: Profile, timeline: Timeline, *, locks: bool) -> Read:
    _, limits = configured(timeline)
    most, source, settings = limits.get(PARALLELISM, 0), "the controller's ConfigMap", []
    if not limits and not locks and (delay := startup_delay(timeline)).capped and not refusals(timeline):
        most, source = delay.most, "runs that were active at once while others waited"
    controller = replace(
        profile.controller, parallelism=most, namespace_parallelism=limits.get(NAMESPACE_PARALLELISM, 0)
    )
    if most:
        settings.append(Setting("parallelism", most, source))
    seen = symptoms(timeline)
    limit = seen.limit(idle=False, late_start=True) if seen.measured else Limit.UNKNOWN
    if limit is Limit.WORKERS and seen.busy:
        controller = replace(controller, workers=max(1, round(seen.busy)))
        settings.append(Setting("controller.workers", controller.workers, "the controller's metrics: all are busy"))
    elif limit is Limit.REQUESTS and seen.rate:
        controller = replace(controller, qps=seen.rate)
        settings.append(Setting("controller.qps", f"{seen.rate:.3g}/s", "the controller's metrics: an even rate"))
    return replace(profile, controller=controller), settings


def _volume(profile: Profile, timeline: Timeline) -> Read:
    capacity, available = (
        floats(timeline.metric(each), "value") for each in (STORE_CAPACITY_BYTES, STORE_AVAILABLE_BYTES)
    )
    if not capacity.size or not available.size:
        return profile, []
    store = replace(profile.store, capacity=float(capacity[0]), used=max(0.0, float(capacity[0] - available[0])))
    return replace(profile, store=store), [
        Setting("store.capacity", format_bytes(store.capacity), "the volume's metrics")
    ]


def _agent(profile: Profile, timeline: Timeline) -> Read:
    late = floats(timeline.runs, "said_s") - floats(timeline.runs, "over_s")
    late = late[np.isfinite(late)]
    if not late.size or late.mean() <= 0:
        return profile, []
    lag_s = max(0.0, float(np.quantile(late, _EARLY)))
    setting = Setting("agent.lag_s", f"{lag_s:.3g} s", "reported ends", late.size)
    return replace(profile, agent=replace(profile.agent, lag_s=lag_s)), [setting]
