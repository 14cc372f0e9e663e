"""The target: one job per run. It lists runs, cleans up and has a service to probe; it reports no tasks."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pipeswarm import (
    Cleanup,
    ConfigError,
    Exchange,
    HttpAnswer,
    HttpRequest,
    Input,
    InputType,
    ListedRun,
    Option,
    Plan,
    Prepared,
    RejectedError,
    RunPage,
    Scenario,
    Service,
    SetUp,
    TargetUnreachableError,
)

OPTIONS = (Option("queue", "default", "queue for the jobs"),)
DEFAULTS: Mapping[str, str] = {}
HOST_VARIABLE = "JOBS_ENDPOINT"

_INPUTS = (Input("work_s", InputType.DOUBLE, required=False, default=1.0),)
_STATES = {"done": "SUCCEEDED", "failed": "FAILED", "cancelled": "CANCELED"}


def prepare(texts: Mapping[str, str], *, simulated: bool) -> Prepared:
    """Everything that can be checked without the service."""
    queue = texts["queue"].strip()
    if not queue.isidentifier():
        raise ConfigError(f"--queue: '{queue}' is not a queue", "use letters, digits and _")
    return Prepared({"queue": queue}, f"queue {queue}", _INPUTS)


def from_plan(plan: Plan, package: bytes | None = None) -> "Jobs":
    """The target of a plan; there is nothing to upload, so `package` is None."""
    return Jobs(str(plan.target_options["queue"]), plan.started_at)


class Jobs:
    """One queue of a job service; `since` (UTC ns) is the start of the test."""

    submits_ahead = True  # the capability SubmitsAhead: requests are made before they are due

    def __init__(self, queue: str, since: int = 0) -> None:
        self._queue = queue
        self._since = since

    def set_up(self, exchange: Exchange) -> SetUp:
        """Check that the queue exists. Nothing needs to be created."""
        answer = exchange(HttpRequest("GET", f"/queues/{self._queue}"))
        if answer.status == 404:
            raise ConfigError(f"the service has no queue '{self._queue}'", "give --queue")
        _object(answer)
        return SetUp({}, _INPUTS)

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        """One request, never repeated: a second one would be a second job."""
        body = {"name": scenario.run_name, "queue": self._queue, **scenario.values}
        answer = exchange(HttpRequest("POST", "/jobs", json.dumps(body).encode(), {"content-type": "application/json"}))
        if answer.status != 201:
            raise RejectedError(answer.status, answer.body.decode(errors="replace"))
        return str(_object(answer)["id"])

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """The capability ListsRuns: the observer follows jobs to their end."""
        query = urlencode({"queue": self._queue, "since": self._since / 1e9, "page": page})
        found = _object(exchange(HttpRequest("GET", f"/jobs?{query}")))
        return RunPage(tuple(_listed(job) for job in found["jobs"]), found["next_page"])

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """The capability CleansUp: what ``--cleanup`` and ``pipeswarm cleanup`` need."""
        if how is Cleanup.ARCHIVE:
            raise RejectedError(405, "the service has no archive")
        method, path = ("DELETE", f"/jobs/{run}") if how is Cleanup.DELETE else ("POST", f"/jobs/{run}/cancel")
        answer = exchange(HttpRequest(method, path))
        if answer.status not in {200, 204, 404}:
            raise RejectedError(answer.status, answer.body.decode(errors="replace"))

    def services(self, exchange: Exchange) -> tuple[Service, ...]:
        """The capability HasServices: what the observer probes."""
        return (Service("job service", f"/queues/{self._queue}"),)


def _object(answer: HttpAnswer) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    if answer.status // 100 != 2 or not isinstance(found, dict):
        raise TargetUnreachableError(f"the job service answered {answer.status}", "is --host its address?")
    return found


def _listed(job: Mapping[str, Any]) -> ListedRun:
    return ListedRun(
        id=job["id"],
        name=job["name"],
        state=_STATES.get(job["state"], "RUNNING"),
        created_at=round(job["created_at"] * 1e9),
        ended_at=round(job["ended_at"] * 1e9) if job["ended_at"] else None,
        error=job["error"],
        resolution_s=0.001,
    )
