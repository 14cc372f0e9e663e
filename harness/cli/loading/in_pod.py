"""The commands of the containers that ``run-in-cluster`` and ``orchestrate`` start; not for users."""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from harness.in_cluster import objects, pod
from harness.in_cluster.orchestrator import unpacked
from harness.model.arguments import duration
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.text.inert import for_output
from harness.plan.environment import variables
from harness.store.folder import REPORT_HTML, SCENARIOS

_VERDICTS = frozenset({ExitCode.OK, ExitCode.SLO_FAILED, ExitCode.INVALID})


def main(argv: list[str] | None = None) -> int:
    """Run one container's command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.cli.loading.in_pod", description=__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    test = commands.add_parser("test", help="fetch inputs, run a load test, upload its run folder")
    test.add_argument("--fetch", action="append", default=[], metavar="ADDRESS=FILE")
    test.add_argument("--upload", metavar="FOLDER=ADDRESS")
    test.add_argument("load", nargs="+", help="the load test's command")
    keep = commands.add_parser("keep", help="keep the run folder until it was taken")
    keep.add_argument("--for", dest="keep_s", type=duration, required=True, metavar="TIME")
    step = commands.add_parser("orchestrate", help="run a load test as the step of a pipeline")
    scenarios = step.add_mutually_exclusive_group(required=True)
    scenarios.add_argument("--text", help="scenarios in the pipeline's parameter")
    scenarios.add_argument("--file", type=Path, help="CSV with the scenarios")
    step.add_argument("--run", type=Path, required=True, help="where the run folder goes")
    step.add_argument("--report", type=Path, required=True, help="where its HTML report goes")
    step.add_argument("--exit-code", type=Path, required=True, help="where the test's exit code goes")
    step.add_argument("load", nargs="+", help="the load test's command")
    for argument_parser in (test, keep):
        argument_parser.add_argument("--state", type=Path, required=True, help="folder that the containers share")
    arguments = parser.parse_args(argv)
    try:
        return {"test": _test, "keep": _keep, "orchestrate": _orchestrate}[arguments.command](arguments)
    except PipeswarmError as error:
        print(for_output(f"error: {error}"), file=sys.stderr)
        return error.exit_code


def _test(arguments: argparse.Namespace) -> int:
    """The exit code of the test; if it ended well, that of storing its folder."""
    _on_signals(lambda *_: sys.exit(ExitCode.INTERRUPTED))  # until the load takes over
    with pod.at_work(arguments.state):
        _fetch(arguments.fetch)
        code = pod.run(arguments.load)
        try:
            _upload(arguments.upload)
        except PipeswarmError as error:
            print(for_output(f"error: the run folder was not stored: {error}"), file=sys.stderr)
            return code or error.exit_code
    return code


def _on_signals(handle: Callable[..., None]) -> None:
    """The first process of a container has no default: signals without a handler are ignored."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _fetch(given: list[str]) -> None:
    for each in given:
        address, _, place = each.rpartition("=")
        objects.fetch(address, Path(place), variables())


def _upload(given: str | None) -> None:
    folder, _, address = (given or "").partition("=")
    if given and Path(folder).is_dir():  # a test that was refused has none
        objects.upload(Path(folder), address, variables())


def _keep(arguments: argparse.Namespace) -> int:
    """Always OK: the pod's verdict is that of the load."""
    stop = threading.Event()
    _on_signals(lambda *_: stop.set())
    if not pod.keep(arguments.state, arguments.keep_s, stop):
        print("the run folder was not taken", file=sys.stderr)
    return ExitCode.OK


def _orchestrate(arguments: argparse.Namespace) -> int:
    """OK once the test has a verdict: KFP keeps no outputs of a step that fails."""
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
        table = arguments.file or Path(place) / SCENARIOS
        if arguments.file is None:
            table.write_bytes(unpacked(arguments.text))
        name = time.strftime("%Y%m%dT%H%M%SZ-orchestrated", time.gmtime())
        code = pod.run([
            *arguments.load, "--scenarios", str(table), "--headless", "--runs-dir", place, "--run-name", name,
        ])  # fmt: skip
        folder = Path(place) / name
        for output in (arguments.run, arguments.report, arguments.exit_code):
            output.parent.mkdir(parents=True, exist_ok=True)
        arguments.exit_code.write_text(str(code))
        if (folder / REPORT_HTML).exists():
            shutil.copy(folder / REPORT_HTML, arguments.report)
        if folder.exists():
            shutil.move(folder, arguments.run)
    return ExitCode.OK if code in _VERDICTS else code


if __name__ == "__main__":
    sys.exit(main())
