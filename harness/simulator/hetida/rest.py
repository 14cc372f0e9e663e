"""The endpoints of a backend (``/api``, or ``/hdapi`` as behind the frontend), a runtime (``/engine``) and adapters.

Simulated executions use simulated adapters; the ones under ``/adapters/<id>`` are for other clients.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from harness.simulator.hetida import answers, requests
from harness.simulator.hetida.adapter.limits import Gate, Limits
from harness.simulator.hetida.adapter.plants import Plants
from harness.simulator.hetida.adapter.rest import application
from harness.simulator.hetida.execution import Ending, Job
from harness.simulator.hetida.service import Service

Advance = Callable[[], None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_JSON = "application/json"


class Endpoints:
    """The routes of one installation. `advance` brings the simulation up to now; `origin_at` is its start in UTC ns."""

    def __init__(self, service: Service, advance: Advance, origin_at: int, seed: int) -> None:
        self._service = service
        self._advance = advance
        self._origin_at = origin_at
        self._seed = seed
        self._random = Random(f"{seed}/outputs")
        self._transformations: dict[str, Mapping[str, Any]] = {}
        self._callbacks: set[asyncio.Task[None]] = set()
        self.executions = 0

    def mount(self, app: web.Application) -> None:
        """Add all routes to the application."""
        for base in ("/api", "/hdapi"):
            one = f"{base}/transformations/{{id}}"
            for method, path, handler in (
                ("GET", f"{base}/adapters/", self._adapters),
                ("GET", f"{base}/transformations/", self._list),
                ("POST", f"{base}/transformations/execute", self._execute),
                ("POST", f"{base}/transformations/execute-latest", self._execute),
                ("POST", f"{base}/transformations/execute-async", self._execute_async),
                ("POST", f"{base}/transformations/execute-latest-async", self._execute_async),
                ("GET", one, self._get),
                ("PUT", one, self._put),
            ):
                app.router.add_route(method, path, _guarded(handler))
        for adapter in self._service.settings.adapters:
            gate = Gate(Limits(adapter.capacity, errors=adapter.error_rate), self._seed)
            app.add_subapp(f"/adapters/{adapter.id}", application(Plants(seed=self._seed), gate, adapter.id))
        app.router.add_get("/engine/info", self._info)
        app.router.add_post("/engine/runtime", _guarded(self._run))

    # --- transformations ------------------------------------------------------------------------------------------

    async def _adapters(self, request: web.Request) -> web.Response:
        found = []
        for name in self._service.adapters:
            url = str(request.url.origin().with_path(f"/adapters/{name}"))
            found.append({"id": name, "name": name, "url": url, "internalUrl": url})
        return _json(found)

    async def _list(self, request: web.Request) -> web.Response:
        group = request.query.get("revision_group_id")
        found = [t for t in self._transformations.values() if group in {None, t.get("revision_group_id")}]
        return _json(found)

    async def _get(self, request: web.Request) -> web.Response:
        return _json(self._stored(request.match_info["id"]))

    async def _put(self, request: web.Request) -> web.Response:
        body = requests.transformation(await request.read(), request.match_info["id"])
        self._transformations[str(body["id"])] = body
        return _json(body, 201)

    def _stored(self, name: str) -> Mapping[str, Any]:
        if name not in self._transformations:
            raise requests.RefusedError(404, f"Found no transformation revision in database with id {name}")
        return self._transformations[name]

    # --- executions -----------------------------------------------------------------------------------------------

    def _requested(self, raw: bytes) -> requests.Request:
        body = requests.execution(raw)
        if body.get("id") is not None:
            return requests.backend_request(body, self._stored(str(body["id"])))
        if body.get("revision_group_id") is None:
            raise requests.RefusedError(422, [requests.wrong(["body", "id"], "field required", "value_error.missing")])
        group = str(body["revision_group_id"])
        released = [t for t in self._transformations.values()
                    if t.get("revision_group_id") == group and t.get("state") == "RELEASED"]  # fmt: skip
        if not released:
            raise requests.RefusedError(404, f"Found no released revision of the revision group {group}")
        return requests.backend_request(body, max(released, key=lambda t: str(t.get("released_timestamp") or "")))

    async def _execute(self, request: web.Request) -> web.StreamResponse:
        status, body, _ = await self._result(self._requested(await request.read()), backend=True)
        return _json(body, status)

    async def _execute_async(self, request: web.Request) -> web.StreamResponse:
        wanted, callback = self._requested(await request.read()), request.query.get("callback_url")
        if not callback:
            raise requests.RefusedError(
                422, [requests.wrong(["query", "callback_url"], "field required", "value_error.missing")]
            )
        task = asyncio.create_task(self._call_back(wanted, callback))
        self._callbacks.add(task)
        task.add_done_callback(self._callbacks.discard)
        return _json({"message": f"Execution request with job id {wanted.body.get('job_id')} accepted"}, 202)

    async def _call_back(self, wanted: requests.Request, callback: str) -> None:
        """Post the result. A failed callback is not retried; an execution that broke has none."""
        status, body, _ = await self._result(wanted, backend=True)
        if status // 100 != 2:
            return
        try:
            async with aiohttp.ClientSession() as session:
                await session.post(callback, json=body, timeout=aiohttp.ClientTimeout(total=10))
        except (aiohttp.ClientError, TimeoutError):
            return

    async def _run(self, request: web.Request) -> web.StreamResponse:
        status, body, job = await self._result(requests.runtime_request(await request.read()), backend=False)
        if job is not None and job.ending is Ending.RESET:
            return _reset(request)
        if status == 500:
            return web.Response(status=500, text="Internal Server Error")
        answer = _json(body, status)
        if job is not None and self._service.settings.runtime.names_replicas:
            answer.headers["X-Upstream-Addr"] = f"runtime-{job.replica}"
        return answer

    async def _info(self, _: web.Request) -> web.Response:
        """The runtime's health, answered by a worker as soon as its event loop is free."""
        self._advance()
        probed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._service.probe(lambda: None if probed.done() else probed.set_result(None))
        self._advance()
        await probed
        return _json({"version": "simulated"})

    async def _result(self, wanted: requests.Request, *, backend: bool) -> tuple[int, Any, Job | None]:
        """Status and body of an execution, and its job; none if it was refused."""
        self.executions += 1
        fault = self._refused(wanted)
        if fault is not None:
            return 200, self._as_service(fault, wanted, backend=backend), None
        self._advance()
        work = self._service.work(wanted.name, wanted.sources(), wanted.sinks(), wanted.parameters())
        ended: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        begin = self._service.execute if backend else self._service.run
        begin(work, lambda job: None if ended.done() else ended.set_result(job))
        self._advance()
        job = await ended
        if job.ending is Ending.OK:
            outputs = {name: answers.value(wanted.outputs[name], self._random) for name in wanted.direct_outputs()}
            body = answers.succeeded(job, wanted.body, self._origin_at, outputs)
        elif job.ending in {Ending.RESET, Ending.LOAD_FAILED}:
            return 500, {"detail": f"Failure while calling the runtime: {job.ending}"}, job
        else:
            body = answers.failed(job, wanted.body, wanted.name, self._origin_at)
        return 200, self._as_service(body, wanted, backend=backend), job

    def _refused(self, wanted: requests.Request) -> dict[str, Any] | None:
        """The result with which the runtime refuses a request before executing it; none if it accepts."""
        unreadable = wanted.unreadable()
        if unreadable is not None:
            return answers.unreadable(wanted.body, wanted.name, *unreadable)
        for adapter in (*wanted.sources(), *wanted.sinks()):
            if adapter not in self._service.adapters:
                return answers.unknown_adapter(wanted.body, adapter)
        return None

    @staticmethod
    def _as_service(body: dict[str, Any], wanted: requests.Request, *, backend: bool) -> dict[str, Any]:
        """The backend omits the node results, and adds the output types and its process id."""
        if not backend:
            return body
        del body["node_results"]
        return body | {"output_types_by_output_name": dict(wanted.outputs), "process_id": os.getpid()}


def _guarded(handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except requests.RefusedError as refused:
            return _json(refused.body, refused.status)

    return handle


def _reset(request: web.Request) -> web.StreamResponse:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type=_JSON)
