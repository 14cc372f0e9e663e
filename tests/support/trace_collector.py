"""Receives traces as a collector does, by both of OTLP's protocols, on free ports of this machine."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from harness.model.http import HttpAnswer, HttpRequest
from tests.support.servers import serving

PATH = "/v1/traces"  # https://opentelemetry.io/docs/specs/otlp/#otlphttp-request


@dataclass
class Collector:
    """What arrived, request by request."""

    address: str = ""
    requests: list[Any] = field(default_factory=list)
    refuses_after: int = 10**6  # requests

    @property
    def spans(self) -> list[Any]:
        return [span for request in self.requests for each in request.resource_spans for span in _spans(each)]

    @property
    def resource(self) -> dict[str, str]:
        """The attributes of what the spans belong to, the same in all requests."""
        (found,) = {
            tuple((each.key, each.value.string_value) for each in of.resource.attributes)
            for request in self.requests
            for of in request.resource_spans
        }
        return dict(found)

    def take(self, request: Any) -> bool:
        if len(self.requests) >= self.refuses_after:
            return False
        self.requests.append(request)
        return True


def _spans(resource_spans: Any) -> Iterator[Any]:
    for scope in resource_spans.scope_spans:
        yield from scope.spans


@contextmanager
def over_http() -> Iterator[Collector]:
    collector = Collector()

    def take(request: HttpRequest) -> HttpAnswer:
        taken = request.path == PATH and collector.take(ExportTraceServiceRequest.FromString(request.body))
        return HttpAnswer(200 if taken else 400, b"")

    with serving(take) as collector.address:
        yield collector


@contextmanager
def over_grpc() -> Iterator[Collector]:
    collector = Collector()

    class Service(TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # the name of the service
            if not collector.take(request):
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "it has had enough")
            return ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(Service(), server)
    collector.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield collector
    server.stop(None).wait()
