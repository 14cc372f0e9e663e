"""``pipeswarm run-in-cluster``: a load test as a Kubernetes Job, with its log and its run folder brought here."""

import argparse
import re
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from harness.cli.loading.load import CONFIG
from harness.collectors.kubernetes.kube_api import connect
from harness.collectors.rights import RIGHTS
from harness.collectors.source_health import UnreachableError
from harness.in_cluster import inputs
from harness.in_cluster.account import ACCOUNT, Rule, account, argo_rules
from harness.in_cluster.inputs import Inputs
from harness.in_cluster.manifests import FETCHED, SENT, ClusterTest, Manifest, belongings, job
from harness.in_cluster.objects import check_address
from harness.in_cluster.pod_state import Step
from harness.in_cluster.running import RunningTest, follow, start
from harness.model.arguments import count_or_0
from harness.model.errors import ConfigError, ExitCode, PipeswarmError, TargetUnreachableError
from harness.model.text.inert import for_output
from harness.plan.kubeconfig import HOST
from harness.plan.options import declared, settings
from harness.plan.validate import check
from harness.store.names import demand_free, safe_name
from harness.targets.discovery import find, names

_LONGEST_NAME = 50  # a Job's pods and the workers' Job add to it; labels hold 63 characters
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGT]i?)?")
# What the manifests decide.
_OURS = {
    "--runs-dir": "run folders arrive in the --runs-dir before the target",
    "--web-host": "the test runs without a web UI: deploy/kubernetes has one with it",
    "--master": "give --workers N before the target",
    "--worker": "give --workers N before the target",
    "--expect-workers": "give --workers N before the target",
    "--token-file": "put the token into a Secret as PIPESWARM_TOKEN and give --env-from SECRET, or --kubeflow-token",
    "--locustfile": "the pods run that of the target: build your own into the image, and name it in deploy/kubernetes",
    "-f": "the pods run that of the target: build your own into the image, and name it in deploy/kubernetes",
    "--html": "the run folder has the report",
    "--csv": "the run folder has the records",
    "--kube-context": "inside a cluster the observer uses its service account; give it before the target",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the Job; the target's and Locust's come after the target."""
    parser.epilog = "The exit code is that of the test. Files that options name are sent along, up to 1 MiB together."
    parser.allow_abbrev = False  # --runs after the target is no abbreviation of --runs-dir
    parser.add_argument("--image", required=True, help="image with Pipeswarm; the Dockerfile builds it")
    parser.add_argument("--namespace", default="", help="namespace of the Job (default: the context's)")
    parser.add_argument("--kube-context", default="", help="kubeconfig context of the cluster")
    parser.add_argument("--workers", type=count_or_0, default=0, metavar="N", help="a master and N workers")
    parser.add_argument(
        "--service-account", default=ACCOUNT, help=f"account of the pods (default: {ACCOUNT}, created if absent)"
    )
    parser.add_argument("--kubeflow-token", action="store_true", help="use the account's token for Kubeflow Pipelines")
    parser.add_argument(
        "--env-from", action="append", default=[], metavar="SECRET",
        help="Secret whose keys become variables, as PIPESWARM_TOKEN or AWS_ACCESS_KEY_ID; repeatable",
    )  # fmt: skip
    parser.add_argument("--cpu", type=quantity, default="1", help="each load generator requests this (default: 1)")
    parser.add_argument("--memory", type=quantity, default="2Gi", help="… and this, its limit (default: 2Gi)")
    parser.add_argument("--runs-volume", default="", metavar="CLAIM", help="volume claim that keeps the run folder")
    parser.add_argument("--upload", default="", metavar="s3://…", help="store a copy of the run folder there")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where the run folder arrives here")
    parser.add_argument("--dry-run", action="store_true", help="print the manifests; ask no cluster")
    parser.add_argument("target", choices=names(), help="the platform")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="options of Locust and of the target")


def quantity(text: str) -> str:
    """A Kubernetes quantity, as it is."""
    if not _QUANTITY.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a quantity: write it as 500m, 2 or 4Gi")
    return text


def run(arguments: argparse.Namespace) -> int:
    """Check what can be checked here, then start the test and follow it; its exit code.

    Raises:
        ConfigError: an option or a file is wrong, or the cluster refuses an object.
        TargetUnreachableError: the cluster does not answer.
    """
    inputs, run_name, options = _checked(arguments)
    if arguments.dry_run:
        sys.stdout.write(_printed(_test(arguments, inputs, run_name, options, arguments.namespace or "default")))
        return ExitCode.OK

    demand_free(arguments.runs_dir, run_name, overwrite=False)
    try:
        api, of_context = connect(arguments.kube_context or "")
    except UnreachableError as error:
        raise TargetUnreachableError(str(error), "check KUBECONFIG; --dry-run needs no cluster") from error
    test = _test(arguments, inputs, run_name, options, arguments.namespace or of_context or "default")
    running = start(api, test, _account(test))
    _say(f"Job {test.name} in namespace {test.namespace} runs {test.run}")
    return _attend(running, test, arguments.runs_dir)


def _checked(arguments: argparse.Namespace) -> tuple[Inputs, str, argparse.Namespace]:
    """The inputs, the name of the run, and the test's options; as much is checked as this machine can."""
    given = [word for word in arguments.options if word != "--headless"]
    config = inputs.config_of(given) or (Path(CONFIG) if Path(CONFIG).is_file() else None)
    configured = inputs.settings_of(config) if config else {}
    for name in (*(name for name, _ in inputs.pairs(given)), *(f"--{name}" for name in configured)):
        if name in _OURS:
            raise ConfigError(f"{name} can't be given for a test in a cluster", _OURS[name])
    if arguments.upload:
        check_address(arguments.upload)
    found = inputs.collect(given, config, find(arguments.target), SENT, FETCHED)
    named = [text for name, text in inputs.pairs(given) if name == "--run-name" and text]
    run_name = safe_name(named[-1]) if named else f"{time.strftime('%Y%m%dt%H%M%Sz', time.gmtime())}-{arguments.target}"
    options = _parsed(arguments.target, given, configured)
    if not found.objects:
        _check_test(arguments.target, options)
    return found, run_name, options


def _parsed(target: str, given: Sequence[str], configured: Mapping[str, object]) -> argparse.Namespace:
    """The options of the test, as texts."""
    platform = find(target)
    parser = argparse.ArgumentParser(prog=f"pipeswarm run-in-cluster … {target}", add_help=False, allow_abbrev=False)
    parser.add_argument("-H", "--host", default="")
    parser.add_argument("-u", "--users", dest="num_users", default=1)
    parser.add_argument("-r", "--spawn-rate", default=1)
    for option in declared(platform):
        option.add_to(parser)
    known = {action.dest for action in parser._actions}  # noqa: SLF001  # argparse has no other way to ask
    texts = {name.replace("-", "_"): text for name, text in configured.items()}
    parser.set_defaults(**{
        name: "; ".join(map(str, text)) if isinstance(text, list) else text
        for name, text in texts.items() if name in known
    })  # fmt: skip
    options, _ = parser.parse_known_args(given)
    options.run_name = ""  # no folder of this machine
    return options


def _check_test(target: str, options: argparse.Namespace) -> None:
    """Read everything as the test will: what can't work is refused before anything is created.

    Raises:
        ConfigError: it can't work.
    """
    platform = find(target)
    check(settings(options, str(options.host), platform), target, platform)
    if not options.host:
        _say("without --host the pod loads the built-in simulated platform")


def _test(
    arguments: argparse.Namespace, inputs: Inputs, run_name: str, options: argparse.Namespace, namespace: str
) -> ClusterTest:
    plain = re.sub(r"[^a-z0-9]+", "-", run_name.lower()).strip("-")
    return ClusterTest(
        name=f"pipeswarm-{plain}"[:_LONGEST_NAME].rstrip("-"), run=run_name, namespace=namespace,
        image=arguments.image, target=arguments.target, inputs=inputs, account=arguments.service_account,
        rules=_rules(arguments, options, namespace),
        workers=arguments.workers, secret=secrets.token_hex(16) if arguments.workers else "",
        secrets=tuple(arguments.env_from), kubeflow_token=arguments.kubeflow_token,
        volume=arguments.runs_volume, upload_to=arguments.upload.rstrip("/"),
        cpu=arguments.cpu, memory=arguments.memory,
    )  # fmt: skip


def _rules(arguments: argparse.Namespace, options: argparse.Namespace, namespace: str) -> tuple[Rule, ...]:
    """What our account needs besides read access; an account that the user names is up to the user."""
    if arguments.target != "argo" or options.host != HOST or arguments.service_account != ACCOUNT:
        return ()
    if options.namespace not in {"", namespace}:
        _say(f"{ACCOUNT} may not create workflows in the namespace {options.namespace}: grant it the verb create there")
        return ()
    return argo_rules(getattr(options, "from"), options.cleanup)


def _account(test: ClusterTest) -> list[Manifest]:
    """The account that may observe, and nothing else; one that the user names is the user's business."""
    if test.account != ACCOUNT:
        return []
    return account(test.namespace, [right.rule() for right in RIGHTS])


def _printed(test: ClusterTest) -> str:
    class Dumper(yaml.SafeDumper):
        """Without references, and with files as blocks of lines."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's signature
            return True

        def represent_text(self, text: str) -> yaml.ScalarNode:
            return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, Dumper.represent_text)
    manifests = [*_account(test), *belongings(test), job(test)]
    return yaml.dump_all(manifests, Dumper=Dumper, sort_keys=False, width=120)


def _attend(running: RunningTest, test: ClusterTest, runs_dir: Path) -> int:
    """Follow the test to its end and bring its folder home; Ctrl-C ends the test, a second one leaves it alone."""
    try:
        try:
            state = follow(running, _write, _say, time.sleep)
        except KeyboardInterrupt:
            if running.state().step in {Step.WAITING, Step.STUCK}:
                running.remove()
                _say("the test had not started; its Job was removed")
                return ExitCode.INTERRUPTED
            _say("ending the test; Ctrl-C again leaves it alone")
            running.interrupt()
            state = follow(running, _write, _say, time.sleep)
    except KeyboardInterrupt:
        _say(f"the test goes on: kubectl delete job {test.name} -n {test.namespace} removes it")
        raise
    if state.step is Step.STUCK:
        running.remove()
        raise ConfigError(f"the test can't start: {state.said}", "the Job was removed; check image, Secrets and volume")
    _bring_home(running, test, runs_dir)
    if state.exit_code is None:
        raise PipeswarmError(f"the load generator was lost: {state.said}", "see --memory, and the events of its node")
    return state.exit_code


def _bring_home(running: RunningTest, test: ClusterTest, runs_dir: Path) -> None:
    """Say where the run folder is; the test's exit code stands even if it can't be brought here."""
    places = [f"volume {test.volume}"] * bool(test.volume) + [f"{test.upload_to}/{test.run}"] * bool(test.upload_to)
    try:
        home = running.bring_home(runs_dir)
    except PipeswarmError as error:
        kept = f"; it is in {' and '.join(places)}" if places else ""
        _say(f"the run folder can't be brought here: {error.message}{kept}")
        return
    _say(f"run folder: {home}" if home else "the test wrote no run folder")


def _write(line: str) -> None:
    sys.stdout.write(for_output(line) + "\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(for_output(text) + "\n")
