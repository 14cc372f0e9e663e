"""The REST gateway's calls for experiments, pipelines and their versions."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from aiohttp import web

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp import tables, view, wire
from harness.simulator.kfp.errors import RpcError, invalid
from harness.simulator.kfp.listing import Table, read_page
from harness.simulator.kfp.records import AVAILABLE, Experiment, Pipeline
from harness.simulator.kfp.server import Server

_EXPERIMENT_FIELDS = frozenset(("experiment_id", "display_name", "description", "namespace", "storage_state"))
Row = TypeVar("Row")
Placed = TypeVar("Placed", Experiment, Pipeline)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CatalogueCalls:
    """Reads and writes the catalogue of one server."""

    def __init__(self, server: Server, calendar: Calendar) -> None:
        self._server = server
        self._catalogue = server.catalogue
        self._stamp = calendar.stamp
        self._experiments = tables.experiments(calendar)
        self._pipelines = tables.pipelines(calendar)
        self._versions = tables.versions(calendar)

    def routes(self) -> Iterator[tuple[str, str, str, Handler]]:
        """HTTP method, path, gRPC method, and handler of each route."""
        experiments, one_experiment = "/experiments", "/experiments/{experiment}"
        one_pipeline, one_version = "/pipelines/{pipeline}", "/pipelines/{pipeline}/versions/{version}"
        yield "GET", experiments, "ListExperiments", self._list_experiments
        yield "POST", experiments, "CreateExperiment", self._create_experiment
        yield "GET", one_experiment, "GetExperiment", self._get_experiment
        yield "DELETE", one_experiment, "DeleteExperiment", self._delete_experiment
        archive, unarchive = self._server.archive_experiment, self._unarchive
        yield "POST", f"{one_experiment}:archive", "ArchiveExperiment", partial(self._change_experiment, archive)
        yield "POST", f"{one_experiment}:unarchive", "UnarchiveExperiment", partial(self._change_experiment, unarchive)
        yield "POST", "/pipelines/upload", "UploadPipeline", self._upload_pipeline
        yield "POST", "/pipelines/upload_version", "UploadPipelineVersion", self._upload_pipeline_version
        yield "GET", "/pipelines", "ListPipelines", self._list_pipelines
        yield "GET", "/pipelines/names/{name}", "GetPipelineByName", self._get_pipeline_by_name
        yield "GET", one_pipeline, "GetPipeline", self._get_pipeline
        yield "DELETE", one_pipeline, "DeletePipeline", self._delete_pipeline
        yield "GET", f"{one_pipeline}/versions", "ListPipelineVersions", self._list_pipeline_versions
        yield "GET", one_version, "GetPipelineVersion", self._get_pipeline_version
        yield "DELETE", one_version, "DeletePipelineVersion", self._delete_pipeline_version

    def _listed(
        self,
        name: str,
        table: Table[Row],
        rows: list[Row],
        render: Callable[[Row, view.Stamp], view.Document],
        request: web.Request,
    ) -> web.Response:
        page = read_page(table, rows, request.query)
        return wire.listing(name, [render(each, self._stamp) for each in page.rows], page.total, page.next_token)

    # --- experiments --------------------------------------------------------------------------------------------

    async def _list_experiments(self, request: web.Request) -> web.Response:
        rows = _of_namespace(self._catalogue.experiments.values(), request)
        return self._listed("experiments", self._experiments, rows, view.experiment, request)

    async def _create_experiment(self, request: web.Request) -> web.Response:
        body = await wire.body(request, _EXPERIMENT_FIELDS)
        given = (wire.text(body, name) for name in ("display_name", "namespace", "description"))
        return wire.answer(view.experiment(self._catalogue.create_experiment(*given), self._stamp))

    async def _get_experiment(self, request: web.Request) -> web.Response:
        return wire.answer(view.experiment(self._catalogue.experiment(request.match_info["experiment"]), self._stamp))

    async def _delete_experiment(self, request: web.Request) -> web.Response:
        self._catalogue.delete_experiment(request.match_info["experiment"])
        return wire.answer({})

    async def _change_experiment(self, change: Callable[[str], None], request: web.Request) -> web.Response:
        change(request.match_info["experiment"])
        return wire.answer({})

    def _unarchive(self, experiment_id: str) -> None:
        self._catalogue.set_experiment_state(experiment_id, AVAILABLE)  # its runs stay archived

    # --- pipelines ----------------------------------------------------------------------------------------------

    async def _upload_pipeline(self, request: web.Request) -> web.Response:
        query, name = request.query, _name(request)
        try:
            package = await wire.uploaded(request)
            row = self._catalogue.create_pipeline(
                name, query.get("namespace", ""), query.get("description", ""), package
            )
        except RpcError as error:
            return wire.upload_refusal(error, "Failed to create a pipeline and a pipeline version")
        return wire.answer(view.pipeline(row, self._stamp))

    async def _upload_pipeline_version(self, request: web.Request) -> web.Response:
        query, failed = request.query, "Failed to create a pipeline version"
        try:
            package = await wire.uploaded(request)
            if not query.get("pipelineid"):
                raise invalid(failed)
            row = self._catalogue.create_version(
                query["pipelineid"], _name(request), query.get("description", ""), package
            )
        except RpcError as error:
            return wire.upload_refusal(error, failed)
        return wire.answer(view.version(row, self._stamp))

    async def _list_pipelines(self, request: web.Request) -> web.Response:
        rows = _of_namespace(self._catalogue.pipelines.values(), request)
        return self._listed("pipelines", self._pipelines, rows, view.pipeline, request)

    async def _get_pipeline(self, request: web.Request) -> web.Response:
        return wire.answer(view.pipeline(self._catalogue.pipeline(request.match_info["pipeline"]), self._stamp))

    async def _get_pipeline_by_name(self, request: web.Request) -> web.Response:
        row = self._catalogue.pipeline_named(request.match_info["name"], request.query.get("namespace", ""))
        return wire.answer(view.pipeline(row, self._stamp))

    async def _delete_pipeline(self, request: web.Request) -> web.Response:
        cascade = request.query.get("cascade", "").lower() == "true"
        self._catalogue.delete_pipeline(request.match_info["pipeline"], cascade=cascade)
        return wire.answer({})

    # --- versions -----------------------------------------------------------------------------------------------

    async def _list_pipeline_versions(self, request: web.Request) -> web.Response:
        pipeline = self._catalogue.pipeline(request.match_info["pipeline"])
        rows = self._catalogue.versions_of(pipeline.id)
        return self._listed("pipeline_versions", self._versions, rows, view.version, request)

    async def _get_pipeline_version(self, request: web.Request) -> web.Response:
        at = request.match_info
        return wire.answer(view.version(self._catalogue.version(at["pipeline"], at["version"]), self._stamp))

    async def _delete_pipeline_version(self, request: web.Request) -> web.Response:
        self._catalogue.delete_version(request.match_info["pipeline"], request.match_info["version"])
        return wire.answer({})


def _of_namespace(rows: Iterable[Placed], request: web.Request) -> list[Placed]:
    namespace = request.query.get("namespace", "")
    return [each for each in rows if namespace in {"", each.namespace}]


def _name(request: web.Request) -> str:
    """The name given to an upload; "" for the pipeline's own."""
    return request.query.get("name", "") or request.query.get("display_name", "")
