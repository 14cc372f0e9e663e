"""Receives the callbacks of a platform that posts a run's result when the run ends."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.collectors.collector import Observation
from harness.model.errors import ConfigError
from harness.model.live.observer import LiveObserver
from harness.targets.target import ReportsBack

_MAX_BYTES = 256 * 2**20
_POLL_S = 0.1


class Callbacks:
    """Listens during the observation. A result that never arrives leaves its run open."""

    def __init__(self, observation: Observation, target: ReportsBack, listen: str) -> None:
        self._observation = observation
        self._target = target
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        host, _, port = listen.rpartition(":")
        try:
            self._server = _Server((host, int(port)), self._receive)
        except OSError as error:
            raise ConfigError(
                f"can't listen for callbacks on {listen}: {error.strerror}", "choose another port with --callback-url"
            ) from error

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        serving = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)
        serving.start()
        stop.wait()
        self._server.shutdown()
        self._server.server_close()

    def live(self) -> LiveObserver:
        """See `Collector`."""
        return LiveObserver(callbacks=len(self._seen))

    def _receive(self, body: bytes) -> bool:
        """Record one result; returns whether it was one. A platform may repeat a call whose response it missed."""
        received_at = self._observation.journal.now()
        over = self._target.read_callback(body)
        if over is None:
            return False
        with self._lock:
            if over.run in self._seen:
                return True
            self._seen.add(over.run)
        taken_ns = round(sum(seconds for _, seconds in over.phases) * 1e9)
        for record in over.records(received_at - taken_ns, received_at, self._observation.plan.target):
            self._observation.journal.write(record)
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], receive: object) -> None:
        super().__init__(address, _Handler)
        self.receive = receive


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:  # the name that http.server calls
        """Take in one posted result: 204 for a result, 400 for anything else."""
        length = int(self.headers.get("content-length") or 0)
        taken = 0 < length <= _MAX_BYTES and self.server.receive(self.rfile.read(length))  # type: ignore[attr-defined]
        self.send_response(204 if taken else 400)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: the results are in the run folder."""


def open_collector(observation: Observation) -> Callbacks | None:
    """Receives callbacks if the plan asks the platform for them."""
    listen = str(observation.plan.target_options.get("callback_listen") or "")
    if not listen or not isinstance(observation.target, ReportsBack):
        return None
    return Callbacks(observation, observation.target, listen)
