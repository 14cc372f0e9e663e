"""The tab "Pipeline runs" of Locust's web UI: ledger, cluster and verdict beside Locust's own statistics."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from harness.model.exposition import CONTENT_TYPE, exposition
from harness.model.units import format_bytes, format_duration

_KEY = "pipeline-runs"
_POLLED = "/stats/requests"
_METRICS = "/metrics"
_REPORT = "/pipeline-runs/report.html"
_COUNTS = ("intended", "sent", "accepted", "in_flight", "done", "failed", "rejected", "missed")


def add(
    web_ui: Any,
    state: Callable[[], tuple[Mapping[str, Any], Mapping[str, Any], str]],
    report: Callable[[], Path | None],
) -> None:
    """Show what `state` says (load, observer, verdict) in a table that the page refreshes, and link the report."""
    from flask import request, send_file

    # The form shows the options in the order in which they make sense.
    web_ui.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
    web_ui.template_args["extended_tabs"] = [{"title": "Pipeline runs", "key": _KEY}]
    columns = [{"key": "what", "title": "Pipeline runs"}, {"key": "value", "title": ""}]
    web_ui.template_args["extended_tables"] = [{"key": _KEY, "structure": columns}]
    web_ui.template_args["extended_csv_files"] = [{"href": _REPORT, "title": "Pipeline run report (HTML)"}]

    @web_ui.app.after_request  # type: ignore[untyped-decorator]  # Flask's app comes untyped through Locust
    def extend(response: Any) -> Any:
        if request.path.endswith(_POLLED) and response.status_code == 200:
            body = orjson.loads(response.get_data())
            body["extended_stats"] = [{"key": _KEY, "data": rows(*state())}]
            response.set_data(orjson.dumps(body))
        return response

    @web_ui.app.route(_METRICS)  # type: ignore[untyped-decorator]  # as above
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def metrics() -> Any:
        load, observed, _ = state()
        return exposition(load, observed), 200, {"Content-Type": CONTENT_TYPE}

    @web_ui.app.route(_REPORT)  # type: ignore[untyped-decorator]  # as above
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def last_report() -> Any:
        path = report()
        if path is None or not path.is_file():
            return "There is no report yet: it is written when a test is over.", 404
        return send_file(path.resolve())


def rows(load: Mapping[str, Any], observed: Mapping[str, Any], verdict: str) -> list[dict[str, str]]:
    """The table: a row a fact, only facts that are known. Locust's table sorts by `name`, so that holds the order."""
    facts: list[tuple[str, str]] = [("stage", str(load.get("stage", "no test yet")))]
    if load.get("load"):
        facts.append(("load", str(load["load"])))
    facts += [(name.replace("_", " "), f"{load[name]:,}") for name in _COUNTS if name in load]
    if load.get("runs_per_min"):
        facts.append(("throughput", f"{load['runs_per_min'] * 60:,.0f} runs/h"))
    if load.get("lag_s") is not None:
        facts.append(("lag of the last second, worst", f"{load['lag_s'] * 1e3:.1f} ms"))
    if load.get("eta_s") is not None:
        facts.append(("time left", format_duration(float(load["eta_s"]))))
    if observed.get("ready_nodes") is not None:
        facts.append(("ready nodes", str(observed["ready_nodes"])))
    free = observed.get("store_free_bytes") or {}
    facts += [(f"free space of {volume}", format_bytes(float(left))) for volume, left in sorted(free.items())]
    facts += [("verdict" if k == 0 else "", text) for k, text in enumerate(verdict.splitlines()) if text.strip()]
    return [{"name": f"{place:03d}", "what": what, "value": value} for place, (what, value) in enumerate(facts)]
