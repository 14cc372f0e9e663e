"""What a Prometheus could explain of the past: which series it has, since when, how finely, and what others cost."""

import time
from collections.abc import Iterator

from harness.collectors.checkup import Check, State, timeouts
from harness.collectors.collector import ObserverSettings
from harness.collectors.http import Http
from harness.collectors.metrics.kube_state_series import ALL
from harness.collectors.metrics.past_asks import scrape_interval_s, since
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.collectors.source_health import UnreachableError
from harness.model.errors import PipeswarmError
from harness.targets.credentials import Credentials

_DAY_S = 86_400
_LABELS = "pods=[pipeline/runid,workflows.argoproj.io/workflow]"
_NODES = "nodes=[*]"
_ANNOTATIONS = "pods=[workflows.argoproj.io/node-name]"
# What to write where series are missing, by a part of the store's address; the last is for all others.
SNIPPETS = (
    ("monitoring.googleapis.com", "GKE's managed kube-state-metrics", (
        "gcloud container clusters update CLUSTER --monitoring=SYSTEM,POD,STORAGE,CADVISOR,KUBELET",
        "# it has few series of pods: run a kube-state-metrics of your own beside it, with",
        f"--metric-labels-allowlist={_LABELS},{_NODES} --metric-annotations-allowlist={_ANNOTATIONS}",
        "# and a PodMonitoring for it",
    )),
    ("prometheus.monitor.azure.com", "AKS with Azure Monitor", (
        "az aks update -g GROUP -n CLUSTER --enable-azure-monitor-metrics \\",
        f'  --ksm-metric-labels-allow-list "{_LABELS},{_NODES}" \\',
        f'  --ksm-metric-annotations-allow-list "{_ANNOTATIONS}"',
        "# and in the ConfigMap ama-metrics-settings-configmap, default-targets-metrics-keep-list:",
        'kubestate = "kube_pod_.*|kube_node_.*|kube_resourcequota|kube_persistentvolumeclaim_.*"',
    )),
    ("aps-workspaces", "Amazon Managed Prometheus", (
        "helm upgrade --install kube-state-metrics prometheus-community/kube-state-metrics \\",
        f"  --set 'metricLabelsAllowlist={{\"{_LABELS}\",\"{_NODES}\"}}' \\",
        f"  --set 'metricAnnotationsAllowList={{\"{_ANNOTATIONS}\"}}'",
        "# and a scrape job for it in the scraper's configuration that drops nothing of kube_pod_.*",
    )),
    ("thanos-querier", "OpenShift's monitoring", (
        "# its own drops kube_*_created and most labels, and can't be changed: run a second kube-state-metrics with",
        f"--metric-labels-allowlist={_LABELS},{_NODES} --metric-annotations-allowlist={_ANNOTATIONS}",
        "# and a ServiceMonitor for it, after enableUserWorkload: true in the ConfigMap cluster-monitoring-config",
    )),
    ("", "kube-prometheus-stack, in its values", (
        "kube-state-metrics:",
        f'  metricLabelsAllowlist: ["{_LABELS}", "{_NODES}"]',
        f'  metricAnnotationsAllowList: ["{_ANNOTATIONS}"]',
    )),
)  # fmt: skip


def past(settings: ObserverSettings) -> Iterator[Check]:
    """The checks; none where no Prometheus is named or it does not answer, as another check says."""
    if not settings.prometheus:
        return
    try:
        credentials = Credentials(token=settings.prometheus_token)
        verify = settings.verify_sources
        http = Http("doctor", settings.prometheus, credentials, timeouts(settings), verify_tls=verify)
        api, now_s = PrometheusApi(http), int(time.time())
        names = api.names(now_s - _DAY_S, now_s)
        every_s, first = scrape_interval_s(api, "", now_s), since(api, "", now_s)
    except (UnreachableError, PipeswarmError):
        return
    missing = [each for each in ALL if not names.intersection(each.names)]
    known = f"{len(ALL) - len(missing)} of {len(ALL)} series of kube-state-metrics"
    found = f"{known}{f', since {first}' if first else ''}{f', every {every_s} s' if every_s else ''}"
    cost = "" if len(missing) < len(ALL) else "a past time can't be explained: pipeswarm explain needs them"
    yield Check("the past", State.LIMITED if cost else State.OK, found, cost)
    if cost:
        return
    for series in missing:
        if series.cost:
            yield Check(series.name, State.LIMITED, "missing in the last day", series.cost)
    if any(series.name.endswith(("_labels", "_annotations")) for series in missing):
        title, lines = snippet(settings.prometheus)
        yield Check("allow-lists", State.LIMITED, f"labels or annotations are missing; for {title}:", "\n".join(lines))


def snippet(address: str) -> tuple[str, tuple[str, ...]]:
    """Where to allow what is missing: the platform that the address is of, and what to write there."""
    return next((title, lines) for part, title, lines in SNIPPETS if part in address)
