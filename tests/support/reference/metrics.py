"""The metrics of a running load test."""

from harness.model.live import metrics as load_metrics
from tests.support.reference.markdown import code, table
from tests.support.reference.markdown import page as whole

_INTRODUCTION = (
    "What `/metrics` shows of a running load test: on the web UI's port, or with `--serve-metrics` on a port of its "
    "own. Unknown values are left out. [Dashboards and rules](../load.md#every-night) use these names."
)
_SECTIONS = {
    "Load": load_metrics.LOAD,
    "Platform, as the observer sees it": load_metrics.OBSERVED,
    "Live findings": load_metrics.FINDINGS,
}


def page() -> str:
    """The page of metrics."""
    lines: list[str] = []
    for heading, families in _SECTIONS.items():
        rows = [(code(name), kind, code(label), text) for _, name, kind, label, text in families]
        lines += [f"## {heading}", "", *table(("metric", "type", "label", "meaning"), rows)]
    return whole("Metrics of a load test", _INTRODUCTION, lines)
