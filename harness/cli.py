"""`pipeswarm`: the composition root. Each verb is a function of its arguments; the table of verbs is in `_parser`."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.model.errors import ExitCode, PipeswarmError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code; an error made for the user is printed without a traceback."""
    arguments = _parser().parse_args(argv)
    carry_out: Callable[[argparse.Namespace], int] = arguments.carry_out
    try:
        return carry_out(arguments)
    except PipeswarmError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: not an error, and nothing more can be said.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  # kept open until the interpreter ends
        return ExitCode.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pipeswarm",
        description="Load tests and capacity planning for ML pipeline platforms on Kubernetes.",
        epilog="Loads are started with locust -f locustfiles/kfp.py; scenarios are made with generate-scenarios.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    report = verbs.add_parser("report", help="seal a run and write its reports again, from what was recorded")
    report.add_argument("run", type=Path, help="a run folder")
    report.add_argument("--open", action="store_true", help="show report.html in the browser")
    _printing(report)
    report.set_defaults(carry_out=_report)

    observe = verbs.add_parser("observe", help="record a platform while a test runs (the load starts it by itself)")
    observe.add_argument("--run", type=Path, required=True, help="the run folder to record into")
    observe.add_argument("--kube-context", default="", help="context of the kubeconfig")
    observe.add_argument("--prometheus", default="", help="address of a Prometheus")
    observe.add_argument("--die-with-parent", action="store_true", help="end when the starting process is gone")
    observe.set_defaults(carry_out=_observe)

    simulate = verbs.add_parser("simulate", help="the simulated platform: serve it, list its profiles and faults")
    from harness.simulator import commands

    commands.configure(simulate)
    simulate.set_defaults(carry_out=commands.run)
    return parser


def _printing(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that prints a result."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout and nothing else there")
    parser.add_argument("--quiet", action="store_true", help="print nothing on stdout")


def _report(arguments: argparse.Namespace) -> int:
    import reports
    from harness.store.folder import RunFolder
    from harness.store.tables import seal
    from reports import document

    folder = RunFolder.open(arguments.run)
    seal(folder)
    report = reports.rebuild(folder)
    html = folder.path / "report.html"
    if arguments.json:
        sys.stdout.write(document.render(report).decode())
    elif not arguments.quiet:
        print(reports.summary(report))
        print(f"report: {html}")
    if arguments.open:
        import webbrowser

        webbrowser.open(html.resolve().as_uri())
    return report.exit_code


def _observe(arguments: argparse.Namespace) -> int:
    from harness.collectors.observer import ObserverSettings, observe
    from harness.store.folder import RunFolder
    from harness.targets.target import find

    folder = RunFolder.open(arguments.run)
    plan = folder.read_plan()
    target = find(plan.target).from_plan(plan)
    settings = ObserverSettings(
        host=plan.host,
        token=os.environ.get("PIPESWARM_TOKEN", ""),
        namespace=str(plan.target_options.get("namespace", "")),
        kube_context=arguments.kube_context or None,
        prometheus=arguments.prometheus or None,
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if arguments.die_with_parent:
        threading.Thread(target=_stop_with_parent, args=(stop,), daemon=True).start()
    observe(folder, target, settings, stop)
    return ExitCode.OK


def _stop_with_parent(stop: threading.Event) -> None:
    """Set `stop` once this process has been handed to another parent: whoever started it is gone."""
    parent = os.getppid()
    while not stop.wait(1.0):
        if os.getppid() != parent:
            stop.set()


if __name__ == "__main__":
    sys.exit(main())
