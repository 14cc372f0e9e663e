"""`explain` after the fact against the live observer, on tests drawn as for `benchmarks/detectors.py`.

    python benchmarks/explaining.py [--tests 100] [--seed N] [--show]
    python benchmarks/explaining.py --day

Of each test of KFP all objects are gone: a real Prometheus has what kube-state-metrics showed of them, every 30 s.
"All sources" adds the runs that KFP's API still lists and the metrics of the components, with labels and annotations in
kube-state-metrics' allow-lists; "kube-state-metrics alone" has its default flags, and nothing else.

The live observer's first finding is that of one which watched the runs and had no records of a load, as a past batch
has none. kube-state-metrics has reasons and no messages: a row of the catalogue without them ("images cannot be
pulled") counts where the live one says more of the same layer ("the registry does not have the image").

`--day` is how long the command takes for a day of 20,000 pods, beside a Prometheus on the same machine.
"""

import argparse
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from harness.analysis.timeline import Timeline
from harness.cli.sweep_bar import SweepBar
from harness.collectors.collector import ObserverSettings
from harness.collectors.explaining import Past, Store, Window
from harness.collectors.inferred_runs import inferred_runs
from harness.collectors.metrics.kube_state_series import ALL
from harness.detectors import diagnose
from harness.model import Event, Node, Plan, Sample, Span
from harness.model.phases import (
    GENERATOR_CPU,
    GENERATOR_RATE,
    LIST_SECONDS,
    OBSERVER_REQUESTS,
    REQUESTED_CPU_CORES,
    REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS,
    REQUESTED_MEMORY_BYTES,
    RUN,
    RUNS_IN_FLIGHT,
    STORE_PROBE_SECONDS,
    STORE_WRITABLE,
    TASK,
    UPLOAD_SECONDS,
)
from harness.model.units import parse_quantity
from harness.plan.subprocesses import module
from harness.reasons.catalogue import builtin
from harness.store import RunFolder
from harness.store.answers import Answers
from harness.store.tables import load, seal
from tests.support.injection.case import ORIGIN_AT, Case, profile_of, read_back, records, run_in, simulated
from tests.support.injection.installations import Installation, draw
from tests.support.injection.judging import bottlenecks
from tests.support.past_store import EVERY_S, dump, objects, prometheus_of, quota_lines

# Samples of the observer itself, and of what no metrics page has.
_OF_OBSERVER = frozenset({
    GENERATOR_CPU, GENERATOR_RATE, LIST_SECONDS, OBSERVER_REQUESTS, REQUESTED_CPU_CORES, REQUESTED_EPHEMERAL_BYTES,
    REQUESTED_GPUS, REQUESTED_MEMORY_BYTES, RUNS_IN_FLIGHT, STORE_PROBE_SECONDS, STORE_WRITABLE, UPLOAD_SECONDS,
})  # fmt: skip
_OF_LOAD = frozenset({GENERATOR_CPU, GENERATOR_RATE, RUNS_IN_FLIGHT})
_BATCH = 10
_RUNS_OF_DAY, _DAY_S = 5500, 86_400.0  # of about four pods each


def main() -> int:
    """Print the shares; 1 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=100)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--show", action="store_true", help="each test")
    parser.add_argument("--day", action="store_true", help="how long a day of 20,000 pods takes")
    options = parser.parse_args()
    if options.day:
        return _day()
    print(f"seed {options.seed}, {options.tests} tests", flush=True)
    numbers, drawn = iter(range(10**6)), list[tuple[int, Installation]]()
    while len(drawn) < options.tests:
        number = next(numbers)
        test = draw(options.seed, number)
        if test.profile.hetida is None:
            case = replace(test.case, without=test.case.without & {"controller metrics"})
            drawn.append((number, replace(test, case=case)))
    same, general = Counter[str](), Counter[str]()
    wrong = list[str]()
    with SweepBar("", things="tests") as bar:
        bar.expect(len(drawn))
        for low in range(0, len(drawn), _BATCH):
            for number, live, found in _batch(drawn[low : low + _BATCH]):
                bar.advance()
                for name, first in found.items():
                    same[name] += first == live
                    general[name] += _is_general_form(first, live)
                    if first != live or options.show:
                        wrong.append(f"{number} {name}: {first or 'nothing'} instead of {live or 'nothing'}")
    print("\n".join(wrong))
    missed = False
    for name, promised in (("all sources", 0.9), ("kube-state-metrics alone", 0.75)):
        exact, share = same[name] / len(drawn), (same[name] + general[name]) / len(drawn)
        missed |= share < promised
        as_general = f"{exact:.0%} exactly, else in its general form"
        print(
            f"{name}: the first finding is the live observer's in {share:.0%} ({as_general}), promised {promised:.0%}"
        )
    return int(missed)


def _is_general_form(found: str, live: str) -> bool:
    """Whether the one row says of the other's layer what can be said without a message."""
    rows = {row.name: row for row in builtin().rows}
    if found == live or not {found, live} <= rows.keys():
        return False
    return rows[found].general and rows[found].layer == rows[live].layer


def _day() -> int:
    """Explain a day; 1 where it takes too long."""
    case = Case(runs=_RUNS_OF_DAY, over_s=_DAY_S, schedule="spread")
    plan = Plan("kfp", "simulated", {"name": "spread"}, case.runs, 1, simulated=True, started_at=ORIGIN_AT)
    with tempfile.TemporaryDirectory() as passing:
        place = Path(passing)
        read_back(plan, records(case, 1.0, 1, profile_of(case), sample_s=600.0), place)
        found = list(objects(run_in(place)))
        pods = sum(manifest["kind"] == "Pod" for manifest, _ in found)
        since_s = ORIGIN_AT // 10**9
        until_s = since_s + round(_DAY_S)
        with prometheus_of(dump(found, since_s, until_s, "day"), place) as url:
            ends = {"since": since_s, "until": until_s}
            times = [f"--{name}={datetime.fromtimestamp(at_s, UTC).isoformat()}" for name, at_s in ends.items()]
            command = [*module("harness.cli"), "explain", *times, f"--prometheus={url}", f"--runs-dir={place}"]
            began_s = time.monotonic()
            subprocess.run([*command, "--run-name=day", "--quiet", "--no-what-if"], check=False)
            took_s = time.monotonic() - began_s
        runs = sum(span.phase == RUN for span in RunFolder.open(place / "day").records(Span))
    print(f"{pods:,} pods of a day, {runs:,} runs inferred, in {took_s:.0f} s with the report, promised 60 s")
    return int(took_s > 60)


def _batch(drawn: list[tuple[int, Installation]]) -> Iterable[tuple[int, str, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as passing:
        place, live, ends = Path(passing), dict[int, str](), dict[int, int]()
        dumps = list[Iterator[str]]()
        for number, test in drawn:
            own = place / str(number)
            own.mkdir()
            timeline = simulated(test.case, test.strength, test.seed, test.profile, own)
            live[number] = _first(_watched(run_in(own)))
            ends[number] = ORIGIN_AT // 10**9 + int(timeline.end_s) + 30
            found = list(objects(run_in(own)))
            dumps.append(dump(found, ORIGIN_AT // 10**9, ends[number], str(number)))
            hard, since_s = _hard(run_in(own))
            scrapes = range(-(-since_s // EVERY_S) * EVERY_S, ends[number], EVERY_S)
            dumps.append(quota_lines(found, hard, scrapes, str(number)))
        with prometheus_of(chain.from_iterable(dumps), place) as url:
            for number, _ in drawn:
                recorded = run_in(place / str(number))
                window = Window(ORIGIN_AT, ends[number] * 10**9)
                yield number, live[number], {
                    "all sources": _explained(recorded, url, window, str(number), whole=True),
                    "kube-state-metrics alone": _explained(recorded, url, window, str(number), whole=False),
                }  # fmt: skip


def _hard(recorded: RunFolder) -> tuple[dict[str, float], int]:
    """The quota that refused pods, under Kubernetes' names, and since when it is known to be there, UTC s."""
    told = (event for event in recorded.records(Event) if "exceeded quota" in event.message)
    for event in sorted(told, key=lambda each: each.at):
        limited = re.search(r"limited: ([\w./=,]+)", event.message)
        if limited:
            pairs = (each.partition("=") for each in limited[1].split(","))
            return {name: parse_quantity(amount) for name, _, amount in pairs}, event.at // 10**9
    return {}, 0


def _first(timeline: Timeline) -> str:
    return next(iter(bottlenecks(diagnose(timeline).findings)), "")


def _watched(recorded: RunFolder) -> Timeline:
    """What an observer saw that watched, and had no records of a load: a past batch has none, either."""
    with tempfile.TemporaryDirectory() as passing:
        folder = _unsent(recorded, Path(passing) / "watched")
        with folder.recorder() as recorder:
            for record in (*recorded.records(Span), *recorded.records(Event), *recorded.records(Node)):
                recorder.write(record)
            for sample in recorded.records(Sample):
                if sample.metric not in _OF_LOAD:
                    recorder.write(sample)
        seal(folder)
        return Timeline.from_frames(folder.read_plan(), load(folder))


def _unsent(recorded: RunFolder, place: Path) -> RunFolder:
    """A folder for the same runs, none of which was sent by a load."""
    folder = RunFolder.create(place, "runs")
    folder.write_plan(replace(recorded.read_plan(), intended=0, schedule={}))
    return folder


def _explained(recorded: RunFolder, url: str, window: Window, cluster: str, *, whole: bool) -> str:
    """The first finding of the past."""
    with tempfile.TemporaryDirectory() as passing:
        folder = _unsent(recorded, Path(passing))
        with folder.recorder() as recorder:
            if whole:
                for record in (*recorded.records(Span), *recorded.records(Event), *recorded.records(Sample)):
                    if _of_api(record) or _measured(record):
                        recorder.write(record)
            settings = ObserverSettings(host="", prometheus=url)
            store = Store(matchers=f'cluster="{cluster}"')
            answers = Answers(folder)
            past = Past(folder, settings, window, store, answers)
            if not whole:
                answers.keep("probe", _default_flags(window, store.matchers))
            past.fetch(threading.Event(), lambda _: None, lambda: None)
            past.record(recorder)
            for each in inferred_runs(folder.records(Span), folder.records(Event)):
                recorder.write(each)
        seal(folder)
        return _first(Timeline.from_frames(folder.read_plan(), load(folder)))


def _default_flags(window: Window, matchers: str) -> dict[str, object]:
    """What the store is found to hold, without the series that need an allow-list."""
    names = [series.name for series in ALL if not series.name.endswith(("_labels", "_annotations"))]
    times = {"start_s": window.since_at // 10**9, "end_s": window.until_at // 10**9}
    return {**times, "matchers": matchers, "interval_s": EVERY_S, "exported": False, "names": names}


def _measured(record: object) -> bool:
    return isinstance(record, Sample) and record.metric not in _OF_OBSERVER


def _of_api(record: object) -> bool:
    """What KFP's API still shows: runs, and tasks of some."""
    match record:
        case Span(phase=phase):
            return phase in {RUN, TASK}
        case Event(kind=kind):
            return kind == "Run"
    return False


if __name__ == "__main__":
    sys.exit(main())
