"""``pipeswarm orchestrate``: KFP runs a load test of its own: a pipeline of one step starts a run for each scenario."""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness import reading
from harness.cli import printing
from harness.cli.loading.run_in_cluster import quantity
from harness.collectors.http import Http, Timeouts
from harness.in_cluster.manifests import KFP_TOKEN
from harness.in_cluster.orchestrator import NAME, SCENARIOS, compiled, packed
from harness.model.errors import ConfigError, ExitCode
from harness.model.http import Exchange
from harness.model.options import Option
from harness.model.scenario import Scenario
from harness.model.schedules import schedule_options
from harness.plan.environment import credentials, platform_host
from harness.plan.options import CREDENTIALS, INSECURE, OBSERVER, SCHEDULE, named, settings
from harness.plan.validate import Checked, check
from harness.targets import kfp
from harness.targets.discovery import find
from harness.targets.kfp import HOST_VARIABLE, KfpTarget

_INSIDE = "http://ml-pipeline.kubeflow:8888"
# The options of a load test that hold for the step; files can't be named there.
_LOAD = (
    "drain", "param-mode", "seed", "slo", "undecided", "max-error-ratio", "abort-on", "max-runs", "yes", "cleanup",
    "cleanup-rate", "namespace", "max-in-flight", "answer-timeout",
)  # fmt: skip
_OBSERVER = frozenset({"platform-namespace", "kube-requests", "prometheus", "metric-profile", "metrics", "redact"})
_KFP = frozenset({"experiment", "service-account", "caching"})
_ADDRESS = "://"
_EXPERIMENT = "pipeswarm-orchestrators"
_POD_DEFAULT = "access-ml-pipeline"  # Kubeflow's; it mounts the token into the pods of this label
_CONNECT_S, _ANSWER_S = 5.0, 60.0


def _options() -> tuple[Option, ...]:
    """The load test's options that the step is given."""
    of_schedules = (option for option in schedule_options() if not option.file)
    of_observer = (option for option in OBSERVER if option.name in _OBSERVER)
    of_kfp = (option for option in kfp.OPTIONS if option.name in _KFP)
    return (SCHEDULE, *of_schedules, *named(*_LOAD), *of_observer, *of_kfp)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options: of the step, and of the load test that it runs."""
    parser.add_argument("--scenarios", required=True, help="CSV with id,scenario_name,…, or its address (s3://…)")
    parser.add_argument("--pipeline", required=True, help="compiled pipeline (IR YAML) that is run for each scenario")
    parser.add_argument("--image", required=True, help="image of the step, with Pipeswarm; the Dockerfile builds it")
    parser.add_argument("--host", default="", help="address of the KFP API (default: as its own tools read it)")
    parser.add_argument(
        "--inside-host", default=_INSIDE, help=f"its address inside the cluster, for the step (default: {_INSIDE})"
    )
    parser.add_argument(
        "--kubeflow-token", action="store_true",
        help="multi-user installations: the step gets its account's token, by the PodDefault access-ml-pipeline",
    )  # fmt: skip
    parser.add_argument("--cpu", type=quantity, default="1", help="the step requests this (default: 1)")
    parser.add_argument("--memory", type=quantity, default="2Gi", help="… and this, its limit (default: 2Gi)")
    parser.add_argument("--dry-run", action="store_true", help="print the compiled orchestrator; ask no platform")
    for option in (*CREDENTIALS, INSECURE):
        option.add_to(parser)
    for option in _options():
        option.add_to(parser, help=option.meaning.replace("%", "%%"))
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the test, upload both pipelines, and start the orchestrator.

    Raises:
        ConfigError: an option, the pipeline or the scenarios are wrong.
        TargetUnreachableError: the platform does not answer.
    """
    host = arguments.host or platform_host(HOST_VARIABLE)
    if not host and not arguments.dry_run:
        raise ConfigError("no address of KFP", f"give --host, or set {HOST_VARIABLE}")
    checked = _checked(arguments, host or arguments.inside_host)
    imported = _ADDRESS in arguments.scenarios
    given = arguments.scenarios if imported else packed(_table(Path(arguments.scenarios)), arguments.scenarios)

    def orchestrator(pipeline: str, version: str) -> bytes:
        load = [*_load(arguments), "--pipeline-id", pipeline, "--version-id", version]
        labels = {_POD_DEFAULT: "true"} if arguments.kubeflow_token else {}
        return compiled(
            arguments.image, load, cpu=arguments.cpu, memory=arguments.memory, labels=labels, imported=imported
        )

    if arguments.dry_run:
        sys.stdout.write(orchestrator("PIPELINE-ID", "VERSION-ID").decode())
        return ExitCode.OK
    exchange = _exchange(arguments, host)
    options = checked.prepared.options
    ids = _set_up(options, checked.prepared.package, exchange)
    package = orchestrator(ids["pipeline_id"], ids["version_id"])
    started = _start(package, given, arguments.namespace, exchange)
    printing.show(
        arguments,
        lambda: f"started run {started} of {NAME} in experiment {_EXPERIMENT}: its step loads {arguments.inside_host}",
        lambda: json.dumps({"run": started, "host": host, **ids}),
    )
    return ExitCode.OK


def _checked(arguments: argparse.Namespace, host: str) -> Checked:
    """What the step will be given, checked here as far as the files are here."""
    texts = {option.dest: getattr(arguments, option.dest) for option in _options()}
    texts["pipeline"] = arguments.pipeline
    texts["scenarios"] = "" if _ADDRESS in arguments.scenarios else arguments.scenarios
    platform = find("kfp")
    given = settings(argparse.Namespace(**texts), host, platform)
    sys.stderr.write(given.notes())
    return check(given, "kfp", platform)


def _load(arguments: argparse.Namespace) -> list[str]:
    """The command of the load test in the step: what was given here, with the address from inside."""
    words = ["pipeswarm", "load", "kfp", "--host", arguments.inside_host]
    if arguments.kubeflow_token:
        words += ["--token-file", f"{KFP_TOKEN}/token"]
    for option in _options():
        text = option.text(getattr(arguments, option.dest))
        if text is True:
            words.append(f"--{option.name}")
        elif text and text != option.default:
            parts = [part.strip() for part in str(text).split(";")] if option.repeatable else [str(text)]
            words += [word for part in parts for word in (f"--{option.name}", part)]
    return words


def _table(path: Path) -> bytes:
    return reading.read_bytes(path, reading.MOST_TABLE_BYTES)


def _exchange(arguments: argparse.Namespace, host: str) -> Exchange:
    return Http(
        "orchestrate", host, credentials(arguments, kfp), Timeouts(_CONNECT_S, _ANSWER_S),
        verify_tls=not arguments.insecure,
    )  # fmt: skip


def _set_up(options: Mapping[str, str], package: bytes | None, exchange: Exchange) -> dict[str, str]:
    """Experiment, pipeline and version, as their ids; uploaded where they are missing."""
    return dict(KfpTarget(options, package=package).set_up(exchange).options)


def _start(package: bytes, scenarios: str, namespace: str, exchange: Exchange) -> str:
    """The id of the orchestrator's run. It has an experiment of its own: the load test watches that of its runs."""
    digest = hashlib.sha256(package).hexdigest()[:12]
    options = {"experiment": _EXPERIMENT, "namespace": namespace, "pipeline_name": f"{NAME}-{digest}"}
    ids = _set_up(options, package, exchange)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    step = Scenario(stamp, "orchestrator", {SCENARIOS: scenarios}, {})
    return KfpTarget({**options, **ids}).submit(step, exchange)
