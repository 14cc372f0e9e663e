"""Limits of the platform's services, as a recorded test shows them: API server, quotas, controller, store, agent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.analysis.capacity.acceptance import acceptance
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.controller_limit import Limit, signs
from harness.analysis.waits.quota_waits import refusals
from harness.analysis.waits.startup_delay import startup_delay
from harness.analysis.waits.workflow_limits import configured
from harness.model.errors import ConfigError
from harness.model.phases import NAMESPACE_PARALLELISM, PARALLELISM, STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES
from harness.model.units import format_bytes, parse_quantity
from harness.planning.identify.setting import Setting, measured_amount
from harness.simulator.profile import Profile, Quota, Tenant

Read = tuple[Profile, Sequence[Setting]]

_LIMITED = re.compile(r"limited: (\S+)")
_UNLIMITED = 1e6  # requests per second: what was not seen to limit
_EARLY = 0.1  # quantile: an answer that waited for nothing


def with_services_of(profile: Profile, timeline: Timeline) -> tuple[Profile, Sequence[Setting]]:
    """The profile with the limits that were read."""
    settings: list[Setting] = []
    for read in (_api, _quotas, _controller, _volume, _agent):
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
    found = Setting("api.qps", f"{flow.rate:.3g}/s", "answers while submissions queued", flow.count)
    return replace(profile, api=replace(profile.api, latency=amount, qps=flow.rate, burst=1)), [found]


def _quotas(profile: Profile, timeline: Timeline) -> Read:
    limits: dict[str, dict[str, float]] = {}
    for each in refusals(timeline):
        found = _LIMITED.search(each.message)
        for pair in found[1].strip(",;").split(",") if found else ():
            resource, _, value = pair.partition("=")
            try:
                limits.setdefault(each.tenant, {})[resource.removeprefix("requests.")] = parse_quantity(value)
            except ConfigError:
                continue
    quotas = {tenant: _quota(got) for tenant, got in limits.items()}
    tenants = tuple(Tenant(name, quota=quotas.get(name, Quota())) for name in timeline.plan.tenants)
    settings = [
        Setting(f"quota.{resource}", f"{value:g}{f' of {tenant}' if tenant else ''}", "refusals of pods")
        for tenant, got in limits.items()
        for resource, value in got.items()
    ]
    return replace(profile, quota=quotas.get("", Quota()), tenants=tenants), settings


def _quota(limits: Mapping[str, float]) -> Quota:
    cpu, memory, gpu, pods = (limits.get(name, 0.0) for name in ("cpu", "memory", "nvidia.com/gpu", "pods"))
    return Quota(cpu, memory, int(gpu), int(pods))


def _controller(profile: Profile, timeline: Timeline) -> Read:
    _, limits = configured(timeline)
    most, source, settings = limits.get(PARALLELISM, 0), "the controller's ConfigMap", []
    if not limits and (delay := startup_delay(timeline)).capped and not refusals(timeline):
        most, source = delay.most, "runs that were active at once while others waited"
    controller = replace(
        profile.controller, parallelism=most, namespace_parallelism=limits.get(NAMESPACE_PARALLELISM, 0)
    )
    if most:
        settings.append(Setting("parallelism", most, source))
    seen = signs(timeline)
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
    found = Setting("agent.lag_s", f"{lag_s:.3g} s", "reported ends", late.size)
    return replace(profile, agent=replace(profile.agent, lag_s=lag_s)), [found]
