"""The REST gateway's calls for experiments, pipelines and their versions."""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from aiohttp import web

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp import listing, view, wire
from harness.simulator.kfp.errors import Code, RpcError, internal
from harness.simulator.kfp.listing import Table, read_page
from harness.simulator.kfp.records import AVAILABLE, Experiment
from harness.simulator.kfp.server import Server
from harness.simulator.kfp.tenancy import Tenancy

_EXPERIMENT_FIELDS = frozenset(("experiment_id", "display_name", "description", "namespace", "storage_state"))
_FORMATS = (".yaml", ".yml", ".json", ".zip", ".tar.gz")  # of uploads, by the file's name
Row = TypeVar("Row")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class CatalogueCalls:
    """Reads and writes the catalogue of one server."""

    def __init__(self, server: Server, calendar: Calendar, tenancy: Tenancy) -> None:
        self._server = server
        self._catalogue = server.catalogue
        self._tenancy = tenancy
        self._stamp = calendar.stamp
        self._experiments = listing.experiments(calendar)
        self._pipelines = listing.pipelines(calendar)
        self._versions = listing.versions(calendar)

    def routes(self) -> Iterator[tuple[str, str, str, Handler]]:
        """HTTP method, path, gRPC method, and handler of each route. Uploads are no gRPC calls and take any method."""
        experiments, one_experiment = "/experiments", "/experiments/{experiment}"
        one_pipeline, one_version = "/pipelines/{pipeline}", "/pipelines/{pipeline}/versions/{version}"
        yield "GET", experiments, "ListExperiments", self._list_experiments
        yield "POST", experiments, "CreateExperiment", self._create_experiment
        yield "GET", one_experiment, "GetExperiment", self._get_experiment
        yield "DELETE", one_experiment, "DeleteExperiment", self._changing(self._catalogue.delete_experiment)
        archive = self._changing(self._server.archive_experiment)
        yield "POST", f"{one_experiment}:archive", "ArchiveExperiment", archive
        unarchive = self._changing(self._unarchive)
        yield "POST", f"{one_experiment}:unarchive", "UnarchiveExperiment", unarchive
        yield "*", "/pipelines/upload", "UploadPipeline", self._upload_pipeline
        yield "*", "/pipelines/upload_version", "UploadPipelineVersion", self._upload_pipeline_version
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
        return wire.listing(name, [render(row, self._stamp) for row in page.rows], page.total, page.next_token)

    # --- experiments --------------------------------------------------------------------------------------------

    async def _list_experiments(self, request: web.Request) -> web.Response:
        namespace = self._tenancy.namespace(request.query.get("namespace", ""))
        await self._tenancy.reviewed("experiment", namespace)
        rows = [experiment for experiment in self._catalogue.experiments.values() if experiment.namespace == namespace]
        return self._listed("experiments", self._experiments, rows, view.experiment, request)

    async def _create_experiment(self, request: web.Request) -> web.Response:
        body = await wire.body(request, _EXPERIMENT_FIELDS)
        name, description = (wire.text(body, field) for field in ("display_name", "description"))
        if not name:
            failed = internal(
                "Failed to convert API experiment to model experiment: "
                "Invalid input error: Experiment must have a non-empty name"
            )
            step = "[ExperimentServer]: Failed to create a experiment due to conversion error"
            raise failed.within(step, complete=True)
        namespace = self._tenancy.namespace(wire.text(body, "namespace"))
        await self._tenancy.reviewed("experiment", namespace)
        made = self._catalogue.create_experiment(name, description, namespace)
        return wire.answer(view.experiment(made, self._stamp))

    async def _get_experiment(self, request: web.Request) -> web.Response:
        return wire.answer(view.experiment(await self._reviewed(request), self._stamp))

    async def _reviewed(self, request: web.Request) -> Experiment:
        """The experiment of a request, once the sender's rights to it were asked for."""
        experiment = self._catalogue.experiment(request.match_info["experiment"])
        await self._tenancy.reviewed("experiment", experiment.namespace)
        return experiment

    def _changing(self, change: Callable[[str], None]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if self._server.multi_user:
                await self._reviewed(request)
            change(request.match_info["experiment"])
            return wire.answer({})

        return handle

    def _unarchive(self, experiment_id: str) -> None:
        self._catalogue.set_experiment_state(experiment_id, AVAILABLE)  # its runs stay archived

    # --- pipelines ----------------------------------------------------------------------------------------------

    async def _upload_pipeline(self, request: web.Request) -> web.Response:
        upload = await wire.uploaded(request)
        if upload is None:
            return wire.upload_refusal(400, "Failed to read pipeline from file", "uploadPipeline", typed=False)
        if not upload.name.endswith(_FORMATS):
            return wire.upload_refusal(400, "Failed to read a pipeline spec file", "uploadPipeline", typed=False)
        namespace = self._tenancy.namespace(request.query.get("namespace", ""))
        await self._tenancy.reviewed("pipeline", namespace)
        try:
            description = request.query.get("description", "")
            row = self._catalogue.create_pipeline(upload.data, _name(request) or upload.name, description, namespace)
        except RpcError as error:
            return _refused(error, "Failed to create a pipeline and a pipeline version", "uploadPipeline")
        return wire.answer(view.pipeline(row, self._stamp))

    async def _upload_pipeline_version(self, request: web.Request) -> web.Response:
        pipeline, failed = request.query.get("pipelineid", ""), "Failed to create a pipeline version"
        upload = await wire.uploaded(request)
        if upload is None or not upload.name.endswith(_FORMATS) or pipeline not in self._catalogue.pipelines:
            return wire.upload_refusal(400, failed, "UploadPipelineVersion", typed=False)
        await self._tenancy.reviewed("pipeline", self._catalogue.pipeline(pipeline).namespace)
        try:
            description = request.query.get("description", "")
            row = self._catalogue.create_version(pipeline, upload.data, _name(request) or upload.name, description)
        except RpcError as error:
            return _refused(error, failed, "UploadPipelineVersion")
        return wire.answer(view.version(row, self._stamp))

    async def _list_pipelines(self, request: web.Request) -> web.Response:
        namespace = self._tenancy.namespace(request.query.get("namespace", ""))
        await self._tenancy.reviewed("pipeline", namespace)
        rows = [pipeline for pipeline in self._catalogue.pipelines.values() if pipeline.namespace == namespace]
        return self._listed("pipelines", self._pipelines, rows, view.pipeline, request)

    async def _get_pipeline(self, request: web.Request) -> web.Response:
        pipeline = self._catalogue.pipeline(request.match_info["pipeline"])
        await self._tenancy.reviewed("pipeline", pipeline.namespace)
        return wire.answer(view.pipeline(pipeline, self._stamp))

    async def _get_pipeline_by_name(self, request: web.Request) -> web.Response:
        name, namespace = request.match_info["name"], self._tenancy.namespace(request.query.get("namespace", ""))
        await self._tenancy.reviewed("pipeline", namespace)
        row = self._catalogue.pipeline_named(name, namespace)
        return wire.answer(view.pipeline(row, self._stamp))

    async def _delete_pipeline(self, request: web.Request) -> web.Response:
        cascade, asked = request.query.get("cascade", "").lower() == "true", request.match_info["pipeline"]
        await self._tenancy.reviewed("pipeline", self._catalogue.pipeline(asked).namespace)
        self._catalogue.delete_pipeline(asked, cascade=cascade)
        return wire.answer({})

    # --- versions -----------------------------------------------------------------------------------------------

    async def _list_pipeline_versions(self, request: web.Request) -> web.Response:
        given = request.match_info["pipeline"]
        try:
            pipeline = self._catalogue.pipeline(given)
        except RpcError as error:
            failed = error.within(f"Failed to get namespace for pipeline id {given}").within(
                f"Failed to list pipeline versions due to error fetching the namespace for pipeline {given}"
            )
            raise failed.within(f"Failed to list pipeline versions for pipeline {given}", complete=True) from error
        await self._tenancy.reviewed("pipeline", pipeline.namespace)
        rows = self._catalogue.versions_of(pipeline.id)
        return self._listed("pipeline_versions", self._versions, rows, view.version, request)

    async def _get_pipeline_version(self, request: web.Request) -> web.Response:
        at = request.match_info
        version = self._catalogue.version(at["pipeline"], at["version"])
        await self._tenancy.reviewed("pipeline", self._catalogue.pipeline(version.pipeline_id).namespace)
        return wire.answer(view.version(version, self._stamp))

    async def _delete_pipeline_version(self, request: web.Request) -> web.Response:
        pipeline, version = request.match_info["pipeline"], request.match_info["version"]
        its = self._catalogue.version(pipeline, version).pipeline_id
        await self._tenancy.reviewed("pipeline", self._catalogue.pipeline(its).namespace)
        self._catalogue.delete_version(pipeline, version)
        return wire.answer({})


def _refused(error: RpcError, failed: str, handler: str) -> web.Response:
    """The refusal of an upload that was read: only of bad input does the server say more than that it failed."""
    return wire.upload_refusal(
        error.code.http, (error.code is Code.INVALID_ARGUMENT and error.detail) or failed, handler
    )


def _name(request: web.Request) -> str:
    """The name given to an upload; "" for the file's."""
    return request.query.get("name", "") or request.query.get("display_name", "")
