"""The REST gateway of the KFP API server, v2beta1: routes, metrics of calls, and runs."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web

from harness.model.live.exposition import Histogram
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp import listing, view, wire
from harness.simulator.kfp.errors import Code, RpcError, internal, invalid
from harness.simulator.kfp.listing import read_page
from harness.simulator.kfp.packages import checked_spec, platform_of
from harness.simulator.kfp.records import Run, Version
from harness.simulator.kfp.rest_catalogue import CatalogueCalls
from harness.simulator.kfp.server import Server
from harness.simulator.kfp.tenancy import Tenancy

API = "/apis/v2beta1"
# Through the Kubernetes API server's proxy: the path of kfp.Client without a host but with a kubeconfig.
_PROXIED = "/api/v1/namespaces/{namespace}/services/{service:(http:)?ml-pipeline(-ui)?(:[a-z0-9]+)?}/proxy"
_VERSIONS = "/apis/{version:v[0-9][a-z0-9]*}/{rest:.*}"  # Kubernetes' groups do not look like versions
_RELEASE = {"commit_sha": "unknown", "tag_name": "2.17.0"}
_RUN_FIELDS = frozenset(
    (
        "experiment_id", "run_id", "display_name", "storage_state", "description", "pipeline_version_id",
        "pipeline_version_reference", "pipeline_spec", "runtime_config", "service_account", "recurring_run_id",
    )
)  # fmt: skip
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Advance = Callable[[], None]
# Error prefix of each failed call (backend/src/apiserver/server/*_server.go).
_FAILED: Mapping[str, str] = {
    "CreateExperiment": "Failed to create a experiment",
    "GetExperiment": "Failed to fetch experiment",
    "ListExperiments": "Failed to create list options",
    "DeleteExperiment": "Failed to delete experiment",
    "ArchiveExperiment": "Failed to archive experiment",
    "UnarchiveExperiment": "Failed to unarchive experiment",
    "GetPipeline": "Failed to get a pipeline {pipeline}. Check error stack",
    "GetPipelineByName": "Failed to get a pipeline with name {name}. Check error stack",
    "ListPipelines": "Failed to list pipelines due invalid list options",
    "DeletePipeline": "Failed to delete pipeline {pipeline}. Check error stack",
    "GetPipelineVersion": "Failed to get a pipeline version {version}",
    "ListPipelineVersions": "Failed to list pipeline versions due invalid list options",
    "DeletePipelineVersion": "Failed to delete a pipeline version id {version} under pipeline id {pipeline}",
    "CreateRun": "Failed to create a new run",
    "GetRun": "Failed to get a run",
    "ListRuns": "Failed to create list options",
    "DeleteRun": "Failed to delete a run",
    "TerminateRun": "Failed to terminate a run",
    "RetryRun": "Failed to retry a run",
    "ArchiveRun": "Failed to archive a run",
    "UnarchiveRun": "Failed to unarchive a run",
}


class Gateway:
    """The routes of one server.

    `advance` brings the simulation up to now; it is called before every read.
    """

    def __init__(self, server: Server, calendar: Calendar, advance: Advance) -> None:
        self._server = server
        self._stamp = calendar.stamp
        self._advance = advance
        self._rendered: dict[str, tuple[int, bytes]] = {}
        self.calls: Counter[tuple[str, str]] = Counter()  # by method and gRPC code
        self.durations: defaultdict[str, Histogram] = defaultdict(Histogram)  # seconds, by method
        self._runs = listing.runs(calendar)
        self._tenancy = Tenancy(server, advance)
        self._catalogue = CatalogueCalls(server, calendar, self._tenancy)

    def mount(self, app: web.Application) -> None:
        """Add all routes to the application."""
        one_run = "/runs/{run:[^/]*}"
        for method, path, name, handler in (
            ("*", "/healthz", "GetHealthz", self._get_healthz),
            *self._catalogue.routes(),
            ("GET", "/runs", "ListRuns", self._list_runs),
            ("POST", "/runs", "CreateRun", self._create_run),
            ("GET", one_run, "GetRun", self._get_run),
            ("DELETE", one_run, "DeleteRun", self._delete_run),
            *(
                ("POST", f"{one_run}:{verb}", f"{verb.title()}Run", self._changing(change))
                for verb, change in (
                    ("terminate", self._server.terminate), ("retry", self._server.retry),
                    ("archive", self._server.archive), ("unarchive", self._server.unarchive),
                )
            ),
            ("GET", "/recurringruns", "ListRecurringRuns", self._list_recurring_runs),
        ):  # fmt: skip
            for place in ("", _PROXIED):
                app.router.add_route(method, place + API + path, self._guarded(name, handler))
        for place in ("", _PROXIED):
            app.router.add_route("*", place + "/apis/v1beta1/healthz", self._get_old_healthz)
            app.router.add_route("*", place + _VERSIONS, self._unknown)

    def _guarded(self, method: str, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._advance()
            begun, code = time.monotonic(), "OK"
            try:
                return await handler(request)
            except RpcError as error:
                code = "".join(word.title() for word in error.code.name.split("_"))
                if error.detail is not None and method in _FAILED and not error.complete:
                    error = error.within(_FAILED[method].format(**request.match_info))
                return wire.refusal(error)
            except asyncio.CancelledError:
                code = "Canceled"
                raise
            finally:
                self.calls[method, code] += 1
                self.durations[method].observe(time.monotonic() - begun)

        return handle

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        """Refuse what is not in the API: differently where another method is."""
        for resource in request.app.router.resources():
            _, methods = await resource.resolve(request)
            if methods and "*" not in methods:
                return wire.refusal(RpcError(Code.UNIMPLEMENTED, "Method Not Allowed"))
        return wire.refusal(RpcError(Code.NOT_FOUND, "Not Found"))

    async def _get_healthz(self, _: web.Request) -> web.Response:
        """Not a gRPC call: takes any method, and writes unset fields too."""
        return wire.answer({**_RELEASE, "multi_user": self._server.multi_user, "pipeline_store": "database"})

    async def _get_old_healthz(self, _: web.Request) -> web.Response:
        """All that is left here of the API before v2beta1."""
        return wire.answer({**_RELEASE, "multi_user": self._server.multi_user})

    # --- runs -----------------------------------------------------------------------------------------------------

    async def _create_run(self, request: web.Request) -> web.Response:
        body = await wire.body(request, _RUN_FIELDS)
        config = wire.inner(body, "runtime_config")
        name, experiment = (wire.text(body, field) for field in ("display_name", "experiment_id"))
        await self._tenancy.reviewed("run", self._server.place(name, experiment).namespace)
        version, by_reference = self._version(body)
        run = self._server.prepare_run(
            name,
            experiment,
            version,
            wire.inner(config, "parameters"),
            by_reference=by_reference,
            description=wire.text(body, "description"),
            service_account=wire.text(body, "service_account"),
            pipeline_root=wire.text(config, "pipeline_root"),
        )
        answer: asyncio.Future[dict[str, Any] | RpcError] = asyncio.get_running_loop().create_future()

        def answered(result: Run | RpcError) -> None:
            """Render the run as it is now, however late the response leaves."""
            if not answer.done():  # the run is created even if the client has hung up
                answer.set_result(result if isinstance(result, RpcError) else self._shown(result))

        self._server.start_run(run, answered)
        self._advance()
        shown = await answer
        if isinstance(shown, RpcError):
            raise shown
        return wire.answer(shown)

    def _referred(self, reference: Mapping[str, Any]) -> Version:
        pipeline_id, version_id = (wire.text(reference, f"pipeline{each}_id") for each in ("", "_version"))
        catalogue, failed = (
            self._server.catalogue,
            "Failed to fetch a template due to error retrieving pipeline version",
        )
        if not version_id:
            return catalogue.version(pipeline_id, "")
        try:
            version = catalogue.version("", version_id)
        except RpcError as error:
            fetching = f"Failed to fetch a pipeline version and its manifest from pipeline version {version_id}"
            raise error.within(fetching).within(failed) from error
        if pipeline_id and version.pipeline_id != pipeline_id:
            wrong = f"Pipeline version {version_id} belongs to pipeline {version.pipeline_id} (not {pipeline_id})"
            raise invalid(wrong).within(failed)
        return version

    def _version(self, body: Mapping[str, Any]) -> tuple[Version, bool]:
        """The pipeline of a run request, and whether it was given by reference.

        Raises:
            RpcError: 500: unknown or invalid pipeline, which the server treats as an internal error.
        """
        reference, spec = wire.inner(body, "pipeline_version_reference"), wire.inner(body, "pipeline_spec")
        try:
            if reference:
                return self._referred(reference), True
            if not spec:
                raise invalid("Failed to fetch a template with an empty pipeline spec manifest")
            platform = platform_of(wire.inner(spec, "platform_spec")) if "pipeline_spec" in spec else {}
            checked = checked_spec(wire.inner(spec, "pipeline_spec") or spec)
            return self._server.catalogue.inline_version(checked, platform), False
        except RpcError as error:
            if error.detail is None:
                raise
            raise internal(f"Failed to create a run due to error fetching manifest: {error}") from error

    async def _list_runs(self, request: web.Request) -> web.Response:
        query = request.query
        rows: Iterable[Run] = self._server.runs.values()
        namespace = self._tenancy.namespace(query.get("namespace", ""))
        if experiment := query.get("experiment_id", ""):
            namespace = self._listed_namespace(experiment)
            rows = [row for row in rows if row.experiment_id == experiment]
        elif namespace:
            rows = [row for row in rows if row.namespace == namespace]
        await self._tenancy.reviewed("run", namespace)
        page = read_page(self._runs, list(rows), query)
        ready = asyncio.get_running_loop().create_future()
        self._server.after_listing(page.rows, lambda: None if ready.done() else ready.set_result(None))
        self._advance()
        await ready
        parts = [self._encoded(run) for run in page.rows]
        return wire.joined("runs", parts, page.total, page.next_token)

    def _listed_namespace(self, experiment: str) -> str:
        try:
            return self._server.catalogue.experiment(experiment).namespace
        except RpcError as error:
            missing = error.within(f"Failed to fetch namespace from experiment {experiment}").within(
                f"Failed to list runs due to error fetching namespace for experiment {experiment}. "
                "Try filtering based on namespace"
            )
            raise missing.within("Failed to list runs", complete=True) from error

    def _shown(self, run: Run) -> view.Document:
        return view.run(run, self._stamp, wrapped=self._server.wraps_nodes)

    def _encoded(self, run: Run) -> bytes:
        """A run's JSON, rendered once per change."""
        kept = self._rendered.get(run.id)
        if kept is None or kept[0] != run.changes:
            kept = self._rendered[run.id] = (run.changes, orjson.dumps(self._shown(run)))
        return kept[1]

    async def _get_run(self, request: web.Request) -> web.Response:
        run = await self._reviewed(request)
        return web.Response(body=self._encoded(run), content_type="application/json")

    async def _delete_run(self, request: web.Request) -> web.Response:
        if self._server.multi_user:
            await self._reviewed(request)
        self._server.delete_run(request.match_info["run"])
        self._rendered.pop(request.match_info["run"], None)
        return wire.answer({})

    async def _reviewed(self, request: web.Request) -> Run:
        """The run of a request, once the sender's rights to it were asked for."""
        asked = request.match_info["run"]
        failed = f"Failed to authorize with the run ID {asked}" if self._server.multi_user else ""
        run = self._server.run(asked, failed)
        await self._tenancy.reviewed("run", run.namespace)
        return run

    def _changing(self, change: Callable[[str], None]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self._server.multi_user:
                await self._reviewed(request)
            change(request.match_info["run"])
            return wire.answer({})

        return handle

    async def _list_recurring_runs(self, _: web.Request) -> web.Response:
        """None: they can't be created, either."""
        return wire.answer({})
