"""How traces are exported: OpenTelemetry's variables say it, as for Locust's ``--otel``."""

from importlib.util import find_spec

from harness.model.errors import ConfigError
from harness.plan.environment import variables

_PROTOCOLS = {"grpc": "grpc", "http/protobuf": "http", "http": "http"}
_PACKAGE = "opentelemetry.exporter.otlp.proto"


def exporter_module() -> str | None:
    """The module with the exporter of spans; none where the variables switch it off.

    Raises:
        ConfigError: the variables name an exporter or a protocol that there is not, or it is not installed.
    """
    given = variables()
    kind = given.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    if kind == "none":
        return None
    if kind != "otlp":
        raise ConfigError(f"--otel: OTEL_TRACES_EXPORTER is {kind}, but runs are exported by OTLP", "set otlp or none")
    named = (given.get(f"OTEL_EXPORTER_OTLP_{signal}PROTOCOL", "").strip().lower() for signal in ("TRACES_", ""))
    protocol = next(filter(None, named), "grpc")
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"--otel: OTLP has no protocol {protocol} here", "set grpc or http/protobuf")
    name = f"{_PACKAGE}.{_PROTOCOLS[protocol]}.trace_exporter"
    try:
        found = find_spec(name)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise ConfigError("--otel needs OpenTelemetry's SDK and exporters", "pip install 'pipeswarm[otel]'")
    return name
