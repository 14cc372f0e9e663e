"""The platform's own ConfigMaps: the workflow controller's configuration, the status of cluster-autoscaler."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.components import CONFIGURATION
from harness.simulator.kube_objects.nodes import POOLS
from harness.simulator.kube_objects.settings import LIMITS
from harness.simulator.kube_objects.snapshots import metadata
from harness.simulator.platform import Platform
from harness.simulator.workflows.work_queue import Throttler

AUTOSCALER_STATUS = "cluster-autoscaler-status"
OF_PLATFORM = frozenset({CONFIGURATION, AUTOSCALER_STATUS})
_GROWS, _RESTS = {"status": "InProgress"}, {"status": "NoActivity"}


class Group(NamedTuple):
    """A node pool as seen by cluster-autoscaler: registered, ready and requested nodes, and its bounds."""

    name: str
    nodes: int
    ready: int
    coming: int
    least: int
    most: int


class AutoscalerStatus(NamedTuple):
    """The status at one resource version, rendered when it is read."""

    groups: tuple[Group, ...]
    at: float


def config_map(name: str, namespace: str, created: str, data: Mapping[str, str], **more: Any) -> Manifest:
    """The manifest of a ConfigMap; `more` as for `metadata`."""
    return {"metadata": metadata("config map", name, created, namespace, **more), "data": dict(data)}


def render_autoscaler_status(status: AutoscalerStatus, calendar: Calendar) -> Manifest:
    """The manifest of cluster-autoscaler's status."""
    return config_map(AUTOSCALER_STATUS, POOLS, calendar.stamp(0.0), {"status": _status(status, calendar)})


def controller_configuration(platform: Platform) -> dict[str, str]:
    """The workflow controller's configuration in KFP's manifests, with the profile's limits."""
    store, namespace, kept_s = platform.store.installed, platform.profile.namespace, platform.profile.controller.ttl_s
    repository = {
        "archiveLogs": True,
        "s3": {
            "endpoint": f"{store.service}.{namespace}.svc:9000",
            "bucket": "mlpipeline",
            "insecure": True,
            "accessKeySecret": {"name": "mlpipeline-minio-artifact", "key": "accesskey"},
            "secretKeySecret": {"name": "mlpipeline-minio-artifact", "key": "secretkey"},
        },
    }
    defaults = {"spec": {"ttlStrategy": {"secondsAfterCompletion": int(kept_s)}}}
    return {
        "artifactRepository": yaml.safe_dump(repository),
        "executor": yaml.safe_dump({"imagePullPolicy": "IfNotPresent"}),
        "workflowDefaults": yaml.safe_dump(defaults),
        **limits(platform.controller.throttler),
    }


def limits(throttler: Throttler) -> dict[str, str]:
    """The limits on running workflows, as the configuration has them."""
    given = zip(LIMITS, (throttler.most, throttler.most_of_each), strict=True)
    return {name: str(limit) for name, limit in given if limit}


def _status(status: AutoscalerStatus, calendar: Calendar) -> str:
    """The status text of cluster-autoscaler since 1.30 (its package clusterstate/api)."""
    groups = [_group(group) for group in status.groups]
    registered = [group["health"]["nodeCounts"]["registered"] for group in groups]
    growing = any(group["scaleUp"] == _GROWS for group in groups)
    document = {
        "time": calendar.stamp(status.at),
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {
                "status": "Healthy",
                "nodeCounts": {"registered": {key: sum(each[key] for each in registered) for key in registered[0]}},
            },
            "scaleUp": _GROWS if growing else _RESTS,
        },
        "nodeGroups": groups,
    }
    return yaml.safe_dump(document, sort_keys=False)


def _group(group: Group) -> Manifest:
    unready = group.nodes - group.ready
    return {
        "name": group.name,
        "health": {
            "status": "Healthy",
            "nodeCounts": {"registered": {"total": group.nodes, "ready": group.ready, "notStarted": unready}},
            "cloudProviderTarget": group.nodes + group.coming,
            "minSize": group.least,
            "maxSize": group.most,
        },
        "scaleUp": _GROWS if group.coming or unready else _RESTS,
    }
