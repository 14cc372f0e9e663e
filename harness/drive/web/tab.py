"""The tab "Pipeline runs" of Locust's web UI: ledger, cluster, findings and verdict, next to Locust's statistics."""

from pathlib import Path
from typing import Any

import orjson
from gevent.server import StreamServer

from harness.drive.session.status_reporter import StatusReporter
from harness.model.errors import ConfigError
from harness.model.live.exposition import CONTENT_TYPE
from harness.model.live.metrics import exposition

_KEY = "pipeline-runs"
_FILES = Path(__file__).parent
_ENTRY = f'<link rel="stylesheet" href="./{_KEY}/tab.css"><script defer src="./{_KEY}/tab.js"></script>'
_JSON = {"Content-Type": "application/json", "Cache-Control": "no-store"}

_SANDBOX = "sandbox allow-scripts allow-popups allow-downloads; frame-ancestors 'none'"


def check_address(host: str, port: int) -> None:
    """Check that the page can be served there, before Locust fails with a traceback.

    Raises:
        ConfigError: it can't, most often because the port is in use.
    """
    server = StreamServer((host, port), lambda *_: None)
    try:
        server.init_socket()
    except OSError as error:
        hint = "choose another --web-port, or use --headless"
        raise ConfigError(f"the web UI can't be served: {error.strerror}", hint) from error
    finally:
        server.close()


def add(web_ui: Any, source: StatusReporter) -> None:
    """Add the tab to Locust's page, with its data, the report, and metrics for Prometheus."""
    from flask import Blueprint, request, send_file, send_from_directory

    # The form shows the options in the order in which they are declared.
    web_ui.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}
    web_ui.template_args["extended_tabs"] = [{"title": "Pipeline runs", "key": _KEY}]
    web_ui.template_args["extended_csv_files"] = [
        {"href": f"./{_KEY}/report.html", "title": "Pipeline run report (HTML)"}
    ]
    base = web_ui.environment.parsed_options.web_base_path
    pages = Blueprint(_KEY, __name__)

    @web_ui.app.after_request  # type: ignore[untyped-decorator]  # Flask's app comes untyped through Locust
    def extend(response: Any) -> Any:
        if request.endpoint == "locust.index" and response.status_code == 200:
            response.set_data(response.get_data(as_text=True).replace("</body>", f"{_ENTRY}</body>"))
        return response

    @pages.route("/metrics")
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def metrics() -> Any:
        return exposition(source.state()), 200, {"Content-Type": CONTENT_TYPE}

    @pages.route(f"/{_KEY}/state")
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def state() -> Any:
        return orjson.dumps(source.state()), 200, _JSON

    @pages.route(f"/{_KEY}/report.html")
    @web_ui.auth_required_if_enabled  # type: ignore[untyped-decorator]  # as above
    def last_report() -> Any:
        path = source.document("report.html")
        if path is None:
            return "No report yet: it is written when the test is over.", 404
        response = send_file(path.resolve())
        # Its texts come from the platform: whatever runs in them must not act as this page.
        response.headers["Content-Security-Policy"] = _SANDBOX
        return response

    @pages.route(f"/{_KEY}/<any('tab.js', 'tab.css'):name>")
    def file(name: str) -> Any:
        return send_from_directory(_FILES, name)

    @pages.route(f"/{_KEY}/plot.js")
    def plot() -> Any:
        return send_file(Path(__file__).parents[2] / "plot.js", max_age=3600)

    web_ui.app.register_blueprint(pages, url_prefix=base or None)
