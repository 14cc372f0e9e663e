"""The columns of `kubectl get` for services and endpoint slices, as on a real server (1.32)."""

from harness.simulator.kube_api.columns import AGE, NAME, NONE, text_column
from harness.simulator.kube_api.resource import Column, Manifest

_UNSET, _SHOWN = "<unset>", 3


def _service_ports(manifest: Manifest) -> str:
    ports = manifest.get("spec", {}).get("ports") or []
    nodes = (f":{each['nodePort']}" if each.get("nodePort") else "" for each in ports)
    return ",".join(f"{each['port']}{node}/{each['protocol']}" for each, node in zip(ports, nodes, strict=True)) or NONE


def _service_selector(manifest: Manifest) -> str:
    labels = manifest.get("spec", {}).get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


SERVICE_COLUMNS = (
    NAME,
    text_column("Type", "spec.type", description="The type of the service."),
    text_column("Cluster-IP", "spec.clusterIP", NONE, description="The address in the cluster."),
    Column("External-IP", "string", lambda _: NONE, description="External addresses, always none."),
    Column("Port(s)", "string", _service_ports, description="The ports of the service."),
    AGE,
    Column("Selector", "string", _service_selector, priority=1, description="The labels of its pods."),
)


def _few(values: list[str], none: str) -> str:
    more = f" + {len(values) - _SHOWN} more..." if len(values) > _SHOWN else ""
    return ",".join(values[:_SHOWN]) + more if values else none


def _slice_ports(manifest: Manifest) -> str:
    return _few([str(each.get("port", "*")) for each in manifest.get("ports") or ()], _UNSET)


def _slice_endpoints(manifest: Manifest) -> str:
    return _few([address for each in manifest.get("endpoints") or () for address in each["addresses"]], _UNSET)


ENDPOINT_SLICE_COLUMNS = (
    NAME,
    text_column("AddressType", "addressType", description="IPv4, IPv6 or FQDN."),
    Column("Ports", "string", _slice_ports, description="The ports of the pods."),
    Column("Endpoints", "string", _slice_endpoints, description="The addresses of the pods."),
    AGE,
)
