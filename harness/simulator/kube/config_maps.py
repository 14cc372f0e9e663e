"""ConfigMaps: the workflow controller's configuration, and what cluster-autoscaler tells of itself."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from harness.simulator.kfp.view import Calendar, Stamp
from harness.simulator.kube.snapshots import metadata
from harness.simulator.platform import Platform
from harness.simulator.profile import Pool

Manifest = dict[str, Any]
AUTOSCALER_STATUS = "cluster-autoscaler-status"


class ConfigMap(NamedTuple):
    """A ConfigMap at one resource version."""

    name: str
    namespace: str
    data: Mapping[str, str]


def render_config_map(config_map: ConfigMap, stamp: Stamp) -> Manifest:
    """The manifest."""
    return {
        "metadata": metadata("config map", config_map.name, stamp(0.0), config_map.namespace),
        "data": dict(config_map.data),
    }


def controller_configuration(platform: Platform) -> dict[str, str]:
    """What KFP's manifests tell the workflow controller, with the limit that the profile has."""
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
    limit = platform.controller.parallelism
    return {
        "artifactRepository": yaml.safe_dump(repository),
        "executor": yaml.safe_dump({"imagePullPolicy": "IfNotPresent"}),
        "workflowDefaults": yaml.safe_dump(defaults),
        **({"parallelism": str(limit)} if limit else {}),
    }


def autoscaler_status(platform: Platform, calendar: Calendar) -> dict[str, str]:
    """The status as cluster-autoscaler writes it since 1.30 (its package clusterstate/api)."""
    groups = [_group(platform, pool) for pool in platform.profile.pools]
    sums = {
        state: sum(group["health"]["nodeCounts"]["registered"][state] for group in groups)
        for state in ("total", "ready", "notStarted")
    }
    up = any(group["scaleUp"]["status"] == "InProgress" for group in groups)
    status = {
        "time": calendar.stamp(platform.loop.now),
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {"status": "Healthy", "nodeCounts": {"registered": sums}},
            "scaleUp": {"status": "InProgress" if up else "NoActivity"},
        },
        "nodeGroups": groups,
    }
    return {"status": yaml.safe_dump(status, sort_keys=False)}


def _group(platform: Platform, pool: Pool) -> Manifest:
    nodes, scaler = platform.cluster.pool_nodes(pool), platform.cluster.autoscaler
    assert scaler is not None  # whose status this is
    ready, coming = sum(node.ready is not None for node in nodes), scaler.upcoming[pool.name]
    growing = coming or ready < len(nodes)
    return {
        "name": pool.name,
        "health": {
            "status": "Healthy",
            "nodeCounts": {"registered": {"total": len(nodes), "ready": ready, "notStarted": len(nodes) - ready}},
            "cloudProviderTarget": len(nodes) + coming,
            "minSize": pool.min,
            "maxSize": scaler.most[pool.name],
        },
        "scaleUp": {"status": "InProgress" if growing else "NoActivity"},
    }
