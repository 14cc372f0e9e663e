"""``/metrics`` on a port of its own (``--serve-metrics``): for tests without a web UI or with a login."""

from collections.abc import Callable, Iterable
from typing import Any

from gevent.pool import Pool
from gevent.pywsgi import WSGIServer

from harness.drive.web.guard import Application, Guard, Start, closed_to_others
from harness.model.errors import ConfigError
from harness.model.live.exposition import CONTENT_TYPE

_MOST_CONNECTIONS = 16
_TEXT = "text/plain; charset=utf-8"


def serve(host: str, port: int, page: Callable[[], str], guard: Guard) -> WSGIServer:
    """Serve `page` under ``/metrics`` until the server is stopped; `guard` refuses other sites, as in the web UI.

    Raises:
        ConfigError: it can't listen there.
    """
    server = WSGIServer(
        (host, port), closed_to_others(_application(page, guard)), log=None, error_log=None,
        spawn=Pool(_MOST_CONNECTIONS),
    )  # fmt: skip
    try:
        server.start()
    except OSError as error:
        hint = "give --serve-metrics another port, or an address of this machine"
        raise ConfigError(f"--serve-metrics: can't listen on {host}:{port}: {error.strerror}", hint) from error
    return server


def _application(page: Callable[[], str], guard: Guard) -> Application:
    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        status, kind, text = _answer(environ, page, guard)
        start(status, [("Content-Type", kind), ("Cache-Control", "no-store")])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [text.encode()]

    return answer


def _answer(environ: dict[str, Any], page: Callable[[], str], guard: Guard) -> tuple[str, str, str]:
    if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
        return "405 Method Not Allowed", _TEXT, "this page can only be read\n"
    if why := guard.refusal("GET", {"Host": environ.get("HTTP_HOST", "")}):
        return "403 Forbidden", _TEXT, f"{why}\n"
    if environ["PATH_INFO"] != "/metrics":
        return "404 Not Found", _TEXT, "the metrics are at /metrics\n"
    return "200 OK", CONTENT_TYPE, page()
