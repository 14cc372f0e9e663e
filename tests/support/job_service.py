"""The job service that examples/plugins loads, in memory: an exchange for unit tests, or served over HTTP."""

import json
import threading
import time
from urllib.parse import parse_qs, urlsplit

from harness.model.http import HttpAnswer, HttpRequest


class JobService:
    """One queue, one worker; every job takes `job_s`."""

    def __init__(self, job_s: float = 0.0) -> None:
        self.job_s = job_s
        self.jobs: list[dict] = []
        self._free_at = 0.0
        self._lock = threading.Lock()

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        url = urlsplit(request.path)
        with self._lock:
            status, body = self._answer(request.method, url.path, parse_qs(url.query), request.body)
        return HttpAnswer(status, json.dumps(body).encode(), {"content-type": "application/json"})

    def _answer(self, method: str, path: str, query: dict, body: bytes) -> tuple[int, object]:
        if path == "/queues/default":
            return 200, {"waiting": sum(job["ends"] > time.time() for job in self.jobs)}
        if (method, path) == ("POST", "/jobs"):
            return 201, self._add(json.loads(body)["name"])
        if (method, path) == ("GET", "/jobs"):
            since = float(query["since"][0])
            return 200, {"jobs": [self._shown(job) for job in self.jobs[::-1] if job["at"] >= since], "next_page": ""}
        known = any(job["id"] == path.split("/")[2] for job in self.jobs) if path.startswith("/jobs/") else False
        return (200, {}) if known else (404, {"error": "not found"})

    def _add(self, name: str) -> dict:
        now = time.time()
        self._free_at = max(self._free_at, now) + self.job_s
        self.jobs.append({"id": f"job-{len(self.jobs)}", "name": name, "at": now, "ends": self._free_at})
        return {"id": self.jobs[-1]["id"]}

    @staticmethod
    def _shown(job: dict) -> dict:
        ended = job["ends"] <= time.time()
        return {
            "id": job["id"], "name": job["name"], "state": "done" if ended else "waiting", "error": "",
            "created_at": job["at"], "ended_at": job["ends"] if ended else None,
        }  # fmt: skip
