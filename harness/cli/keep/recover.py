"""``pipeswarm recover RUN [SPOOL…]``: add what its load or workers could not write any more to a run folder."""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson

from harness.cli import printing
from harness.cli.keep.cleanup import configure_access, connected
from harness.collectors.runs.known_runs import KnownRuns
from harness.model.errors import ConfigError, ExitCode, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpRequest
from harness.model.records import Event, Span
from harness.store.claims import Claim
from harness.store.folder import RunFolder
from harness.store.recovery import Recovered, recover, sentences
from harness.targets.target import ListedRun, ListsRuns, Target, Watched, WatchesRuns

_SKEW_NS = 2 * 10**9  # the platform's clock may be behind, and has whole seconds
_PAGE, _MOST_SAID, _OK = 500, 200, 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument(
        "spools", type=Path, nargs="*", metavar="SPOOL",
        help="files that workers named when they lost their master (default: those of this run on this machine, "
        "which are deleted afterwards)",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="", help="platform of the run: its listing is read for runs that were not seen"
    )
    configure_access(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Merge the spools, each record once, add runs found on the platform, and write the reports again."""
    from harness.cli.look.rebuilding import rebuild

    folder = RunFolder.open(arguments.run)
    if arguments.host:
        _list(folder, arguments)
    merged, found = recover(folder, arguments.spools)
    if not (merged or found):
        raise ConfigError(
            f"there is no spool of {folder.path} on this machine, and no further run of it was seen on the platform",
            "give the files that the workers named, or --host to look at the platform again",
        )
    for spool in () if arguments.spools else merged:
        spool.unlink(missing_ok=True)
    result = rebuild(folder, what_if=True)
    printing.show(
        arguments,
        lambda: "\n".join((*sentences(merged, found), result.verdict_text)),
        lambda: _document(merged, found, result.verdict),
    )
    return ExitCode.OK


def _list(folder: RunFolder, arguments: argparse.Namespace) -> None:
    """Record the runs that the platform lists now and the observer did not see.

    Raises:
        ConfigError: the platform lists no runs, or the test is still running.
        TargetUnreachableError: it does not answer.
    """
    plan = folder.read_plan()
    target, client = connected(plan, arguments)
    known = KnownRuns(plan)
    known.resume(folder.records(Event), folder.records(Span))
    try:
        with Claim(folder.path), folder.recorder() as recorder:
            for listed in _pages(target, client, plan.target):
                ours = [listed_run for listed_run in listed if listed_run.created_at >= plan.started_at - _SKEW_NS]
                for record in (record for our in ours for record in known.see(our, time.time_ns())):
                    recorder.write(record)
                if isinstance(target, ListsRuns) and len(ours) < len(listed):  # the newest come first
                    return
    finally:
        client.close()


def _pages(target: Target, exchange: Exchange, name: str) -> Iterator[Sequence[ListedRun]]:
    """The runs that a platform lists now, page by page."""
    page = ""
    if isinstance(target, ListsRuns):
        while listed := target.list_runs(exchange, page):
            yield listed.runs
            page = listed.next_page
            if not page:
                return
    if not isinstance(target, WatchesRuns):
        raise ConfigError(f"{name} lists no runs", "leave --host out")
    while True:
        found, page = _objects(target.watched(), exchange, page)
        yield [target.read_run(each) for each in found]
        if not page:
            return


def _objects(watched: Watched, exchange: Exchange, page: str) -> tuple[list[dict[str, Any]], str]:
    """One page of runs that are objects of Kubernetes, which an Argo server passes on; and the next one's token."""
    prefix = "listOptions." if watched.stream else ""
    query = {"labelSelector": watched.labels, "limit": _PAGE, "continue": page}
    path = f"{watched.path}?{urlencode({prefix + key: value for key, value in query.items() if value})}"
    answer = exchange(HttpRequest("GET", path, most_bytes=LONG_ANSWER))
    try:
        listed = orjson.loads(answer.body) if answer.status == _OK else {}
        return [dict(item) for item in listed["items"] or ()], str(listed["metadata"].get("continue") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        said = answer.body[:_MOST_SAID].decode(errors="replace")
        raise TargetUnreachableError(f"GET {watched.path} answered {answer.status} {said}", "see --host") from None


def _document(merged: Mapping[Path, Recovered], found: int, verdict: str) -> str:
    spools = [{"spool": str(spool), "recovered": recovered} for spool, recovered in merged.items()]
    return orjson.dumps({"spools": spools, "found_on_platform": found, "verdict": verdict}).decode()
