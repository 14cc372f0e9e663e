"""The REST gateway of the KFP API server, v2beta1."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kfp import tables, view
from harness.simulator.kfp.errors import RpcError, invalid
from harness.simulator.kfp.listing import read_page
from harness.simulator.kfp.packages import checked_spec, platform_of
from harness.simulator.kfp.records import Run, Version
from harness.simulator.kfp.server import Server
from harness.simulator.prometheus import Histogram

API = "/apis/v2beta1"
_HEALTH = {"multi_user": False}
_RUN_FIELDS = frozenset(
    (
        "experiment_id", "run_id", "display_name", "storage_state", "description", "pipeline_version_id",
        "pipeline_version_reference", "pipeline_spec", "runtime_config", "service_account", "recurring_run_id",
    )
)  # fmt: skip
_EXPERIMENT_FIELDS = frozenset(("experiment_id", "display_name", "description", "namespace", "storage_state"))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Advance = Callable[[], None]


class Gateway:
    """Routes of one server. `advance` brings the simulation up to the present and is called before it is read."""

    def __init__(self, server: Server, calendar: view.Calendar, advance: Advance) -> None:
        self._server = server
        self._stamp = calendar.stamp
        self._advance = advance
        self._rendered: dict[str, tuple[int, bytes]] = {}
        self.calls: Counter[tuple[str, str]] = Counter()  # by method and gRPC code
        self.durations: defaultdict[str, Histogram] = defaultdict(Histogram)  # seconds, by method
        self._runs = tables.runs(calendar)
        self._experiments = tables.experiments(calendar)
        self._pipelines = tables.pipelines(calendar)
        self._versions = tables.versions(calendar)

    def mount(self, app: web.Application) -> None:
        """Register all routes."""
        one_run, one_pipeline = "/runs/{run}", "/pipelines/{pipeline}"
        for method, path, handler in (
            ("GET", "/healthz", self._get_healthz),
            ("GET", "/experiments", self._list_experiments),
            ("POST", "/experiments", self._create_experiment),
            ("GET", "/experiments/{experiment}", self._get_experiment),
            ("DELETE", "/experiments/{experiment}", self._delete_experiment),
            ("POST", "/experiments/{experiment}:{verb}", self._experiment),
            ("POST", "/pipelines/upload", self._upload_pipeline),
            ("POST", "/pipelines/upload_version", self._upload_pipeline_version),
            ("GET", "/pipelines", self._list_pipelines),
            ("GET", one_pipeline, self._get_pipeline),
            ("DELETE", one_pipeline, self._delete_pipeline),
            ("GET", f"{one_pipeline}/versions", self._list_pipeline_versions),
            ("GET", f"{one_pipeline}/versions/{{version}}", self._get_pipeline_version),
            ("DELETE", f"{one_pipeline}/versions/{{version}}", self._delete_pipeline_version),
            ("GET", "/runs", self._list_runs),
            ("POST", "/runs", self._create_run),
            ("GET", one_run, self._get_run),
            ("DELETE", one_run, self._delete_run),
            ("POST", f"{one_run}:{{verb}}", self._run),
        ):
            app.router.add_route(method, API + path, self._guarded(handler))
        app.router.add_route("*", API + "/{rest:.*}", self._unknown)

    def _guarded(self, handler: Handler) -> Handler:
        method = "".join(word.title() for word in handler.__name__.split("_"))  # _create_run: CreateRun

        async def handle(request: web.Request) -> web.StreamResponse:
            self._advance()
            begun, code = time.monotonic(), "OK"
            verb = request.match_info.get("verb")
            name = f"{verb.title()}{method}" if verb else method
            try:
                return await handler(request)
            except RpcError as error:
                code = "".join(word.title() for word in error.code.name.split("_"))
                return refusal(error)
            except asyncio.CancelledError:
                code = "Canceled"
                raise
            finally:
                self.calls[name, code] += 1
                self.durations[name].observe(time.monotonic() - begun)

        return handle

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        known = any(
            resource.canonical == request.path
            for resource in request.app.router.resources()
            if "{" not in resource.canonical
        )
        if known:
            return _json({"code": 12, "message": "Method Not Allowed", "details": []}, 501)
        return _json({"code": 5, "message": "Not Found", "details": []}, 404)

    async def _get_healthz(self, _: web.Request) -> web.Response:
        # A false boolean is an unset field.
        return _json({name: value for name, value in _HEALTH.items() if value})

    # --- experiments --------------------------------------------------------------------------------------------

    async def _list_experiments(self, request: web.Request) -> web.Response:
        namespace = request.query.get("namespace", "")
        rows = [each for each in self._server.experiments.values() if not namespace or each.namespace == namespace]
        page = read_page(self._experiments, rows, request.query)
        return _listing(
            "experiments", [view.experiment(e, self._stamp) for e in page.rows], page.total, page.next_token
        )

    async def _create_experiment(self, request: web.Request) -> web.Response:
        body = await _body(request, _EXPERIMENT_FIELDS)
        given = (str(body.get(name, "")) for name in ("display_name", "namespace", "description"))
        return _json(view.experiment(self._server.create_experiment(*given), self._stamp))

    async def _get_experiment(self, request: web.Request) -> web.Response:
        return _json(view.experiment(self._server.experiment(request.match_info["experiment"]), self._stamp))

    async def _delete_experiment(self, request: web.Request) -> web.Response:
        self._server.delete_experiment(request.match_info["experiment"])
        return _json({})

    async def _experiment(self, request: web.Request) -> web.StreamResponse:
        verb, experiment_id = request.match_info["verb"], request.match_info["experiment"]
        if verb not in {"archive", "unarchive"}:
            return await self._unknown(request)
        self._server.archive_experiment(experiment_id, archived=verb == "archive")
        return _json({})

    # --- pipelines ----------------------------------------------------------------------------------------------

    async def _upload_pipeline(self, request: web.Request) -> web.Response:
        query, package = request.query, await _uploaded(request)
        name = query.get("name", "") or query.get("display_name", "")
        row = self._server.create_pipeline(name, query.get("namespace", ""), query.get("description", ""), package)
        return _json(view.pipeline(row, self._stamp))

    async def _upload_pipeline_version(self, request: web.Request) -> web.Response:
        query, package = request.query, await _uploaded(request)
        if not query.get("pipelineid"):
            raise invalid("Invalid input error: Please specify a pipeline id when uploading a pipeline version")
        name = query.get("name", "") or query.get("display_name", "")
        row = self._server.create_version(query["pipelineid"], name, query.get("description", ""), package)
        return _json(view.version(row, self._stamp))

    async def _list_pipelines(self, request: web.Request) -> web.Response:
        namespace = request.query.get("namespace", "")
        rows = [each for each in self._server.pipelines.values() if not namespace or each.namespace == namespace]
        page = read_page(self._pipelines, rows, request.query)
        return _listing("pipelines", [view.pipeline(p, self._stamp) for p in page.rows], page.total, page.next_token)

    async def _get_pipeline(self, request: web.Request) -> web.Response:
        return _json(view.pipeline(self._server.pipeline(request.match_info["pipeline"]), self._stamp))

    async def _delete_pipeline(self, request: web.Request) -> web.Response:
        self._server.delete_pipeline(request.match_info["pipeline"])
        return _json({})

    async def _list_pipeline_versions(self, request: web.Request) -> web.Response:
        pipeline = self._server.pipeline(request.match_info["pipeline"])
        page = read_page(self._versions, self._server.versions_of(pipeline.id), request.query)
        rendered = [view.version(each, self._stamp) for each in page.rows]
        return _listing("pipeline_versions", rendered, page.total, page.next_token)

    async def _get_pipeline_version(self, request: web.Request) -> web.Response:
        at = request.match_info
        return _json(view.version(self._server.version(at["pipeline"], at["version"]), self._stamp))

    async def _delete_pipeline_version(self, request: web.Request) -> web.Response:
        self._server.delete_version(request.match_info["pipeline"], request.match_info["version"])
        return _json({})

    # --- runs ---------------------------------------------------------------------------------------------------

    async def _create_run(self, request: web.Request) -> web.Response:
        body = await _body(request, _RUN_FIELDS)
        config = body.get("runtime_config") or {}
        version, by_reference = self._version(body)
        run = self._server.prepare_run(
            str(body.get("display_name", "")),
            str(body.get("experiment_id", "")),
            version,
            config.get("parameters") or {},
            by_reference=by_reference,
            description=str(body.get("description", "")),
            service_account=str(body.get("service_account", "")),
            pipeline_root=str(config.get("pipeline_root", "")),
        )
        answer = asyncio.get_running_loop().create_future()
        # A client that hung up has its run made all the same.
        self._server.start_run(run, lambda result: None if answer.done() else answer.set_result(result))
        self._advance()
        result = await answer
        if isinstance(result, RpcError):
            raise result
        return _json(view.run(result, self._stamp))

    def _version(self, body: Mapping[str, Any]) -> tuple[Version, bool]:
        """The pipeline that a run names or brings along."""
        reference, spec = body.get("pipeline_version_reference"), body.get("pipeline_spec")
        if reference:
            pipeline_id, version_id = (str(reference.get(f"pipeline{each}_id", "")) for each in ("", "_version"))
            return self._server.version(pipeline_id, version_id), True
        if not spec:
            raise invalid("Invalid input error: Failed to fetch a pipeline manifest: the run has no pipeline source")
        platform = platform_of(spec.get("platform_spec") or {}) if "pipeline_spec" in spec else {}
        return self._server.inline_version(checked_spec(spec.get("pipeline_spec") or spec), platform), False

    async def _list_runs(self, request: web.Request) -> web.Response:
        query = request.query
        if self._server.listing_s():
            found = asyncio.get_running_loop().create_future()
            self._server.after_listing(lambda: None if found.done() else found.set_result(None))
            self._advance()
            await found
        experiment, namespace = query.get("experiment_id", ""), query.get("namespace", "")
        rows: Iterable[Run] = self._server.runs.values()
        if experiment:
            self._server.experiment(experiment)
            rows = [each for each in rows if each.experiment_id == experiment]
        elif namespace:
            rows = [each for each in rows if each.namespace == namespace]
        page = read_page(self._runs, list(rows), query)
        parts = [self._encoded(run) for run in page.rows]
        return _joined("runs", parts, page.total, page.next_token)

    def _encoded(self, run: Run) -> bytes:
        """A run's JSON, rendered once for each of its changes."""
        kept = self._rendered.get(run.id)
        if kept is None or kept[0] != run.changes:
            kept = self._rendered[run.id] = (run.changes, orjson.dumps(view.run(run, self._stamp)))
        return kept[1]

    async def _get_run(self, request: web.Request) -> web.Response:
        run = self._server.run(request.match_info["run"])
        return web.Response(body=self._encoded(run), content_type="application/json")

    async def _delete_run(self, request: web.Request) -> web.Response:
        self._server.delete_run(request.match_info["run"])
        self._rendered.pop(request.match_info["run"], None)
        return _json({})

    async def _run(self, request: web.Request) -> web.StreamResponse:
        run_id = request.match_info["run"]
        match request.match_info["verb"]:
            case "terminate":
                self._server.terminate(run_id)
            case "retry":
                self._server.retry(run_id)
            case "archive":
                self._server.archive(run_id, archived=True)
            case "unarchive":
                self._server.archive(run_id, archived=False)
            case _:
                return await self._unknown(request)
        return _json({})


def refusal(error: RpcError) -> web.Response:
    """An error as grpc-gateway sends it."""
    detail = {"@type": "type.googleapis.com/google.rpc.Status", "code": int(error.code), "message": error.message}
    return _json({"code": int(error.code), "message": error.message, "details": [detail]}, error.code.http)


def _json(document: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def _listing(name: str, rows: list[dict[str, Any]], total: int, token: str) -> web.Response:
    return _joined(name, [orjson.dumps(row) for row in rows], total, token)


def _joined(name: str, rows: list[bytes], total: int, token: str) -> web.Response:
    """A list's answer; fields that are unset are left out, so that nothing at all is ``{}``."""
    parts = []
    if rows:
        parts.append(b'"%s":[%s]' % (name.encode(), b",".join(rows)))
    if total:
        parts.append(b'"total_size":%d' % total)
    if token:
        parts.append(b'"next_page_token":%s' % orjson.dumps(token))
    return web.Response(body=b"{" + b",".join(parts) + b"}", content_type="application/json")


async def _body(request: web.Request, known: frozenset[str]) -> dict[str, Any]:
    text = await request.read()
    try:
        body = orjson.loads(text or b"{}")
    except ValueError as error:
        raise invalid(f"proto: syntax error: {error}") from error
    if not isinstance(body, dict):
        raise invalid("proto: syntax error: unexpected token")
    fields = {_snake(name): value for name, value in body.items()}
    for name in body:
        if _snake(name) not in known:
            raise invalid(f'proto: (line 1:{text.find(name.encode()) + 1}): unknown field "{name}"')
    return fields


def _snake(name: str) -> str:
    """Proto JSON accepts a field's name in both spellings."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


async def _uploaded(request: web.Request) -> bytes:
    """The file of a multipart upload."""
    if not request.content_type.startswith("multipart/"):
        raise invalid(
            "Invalid input error: Failed to read pipeline from file: request Content-Type isn't multipart/form-data"
        )
    async for part in await request.multipart():
        if getattr(part, "name", None) == "uploadfile":
            return bytes(await part.read(decode=True))  # type: ignore[union-attr]  # nested multiparts are not sent here
    raise invalid("Invalid input error: Failed to read pipeline from file: http: no such file")
