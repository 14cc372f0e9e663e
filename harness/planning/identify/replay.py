"""A recorded test again, in simulated time: what was measured of it, by the same definitions."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import nan

import numpy as np

from harness.analysis.tenants import fairness
from harness.analysis.timeline import Bools, Floats
from harness.analysis.waits.waits import segments_of
from harness.model import Event, Node, Outcome, PodSpans, Sample, Span, Submission
from harness.model.phases import (
    CONTROLLER,
    DISPATCH,
    OF_TASK,
    POD_PHASES,
    PRECEDENCE,
    PUBLISHING,
    RUNNING,
    SERVICE_PHASES,
    STORING,
    SUBMIT,
    SUCCEEDED,
    UPLOAD_SECONDS,
)
from harness.planning.identify.limits import ON_NODE, most_per_node, waits_for
from harness.planning.identify.recorded import RecordedTest, by_tenant
from harness.planning.identify.reproduction import CHECKED, Measures
from harness.simulator.fast import Compact, simulate_compactly
from harness.simulator.profile import Profile

_NS = 1e9
_PATIENCE_S = 7 * 86400.0  # after the last arrival: runs that have not ended by then never will
_NUMBER = {name: k for k, name in enumerate(POD_PHASES)}


def replay(profile: Profile, test: RecordedTest, seed: int = 0) -> Measures:
    """Simulate a test on a platform.

    Args:
        profile: the platform.
        test: what is sent.
        seed: random seed.

    Raises:
        RpcError: the package is not a pipeline.
    """
    last = test.arrivals[-1].due_s
    until = last + _PATIENCE_S if test.until_s is None else max(test.until_s, last + 1.0)
    records = simulate_compactly(profile, test.package, test.arrivals, seed=seed, drain_s=until - last, sample_s=60.0)
    seen = _Seen(test, profile)
    seen.take(records)
    return seen.measures(until)


@dataclass(slots=True)
class _Seen:
    """What the records say, as it comes."""

    test: RecordedTest
    profile: Profile
    sent: dict[str, tuple[int, float, float]] = field(default_factory=dict)  # run: place, sent, answered
    over: dict[str, float] = field(default_factory=dict)
    said: dict[str, tuple[float, bool]] = field(default_factory=dict)  # run: when reported, and whether it succeeded
    nodes: list[Node] = field(default_factory=list)
    pods: list[PodSpans] = field(default_factory=list)
    executed: list[tuple[str, int, float, float]] = field(default_factory=list)  # run, phase, begin, end
    refused: list[tuple[str, str, float]] = field(default_factory=list)  # pods by a quota: run, task, since when
    uploaded: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def take(self, records: Iterable[Compact]) -> None:
        for record in records:
            match record:
                case PodSpans():
                    self.pods.append(record)
                case Submission(outcome=Outcome.ACCEPTED, run=str(run), sent_at=int(at), answered_at=int(answered)):
                    self.sent[run] = record.seq, at / _NS, answered / _NS
                case Span(step="", run=run, ended_at=int(at)):
                    self.over[run] = at / _NS
                case Span(run=run, phase=phase, started_at=int(begun), ended_at=int(at)) if phase in SERVICE_PHASES:
                    self.executed.append((run, _NUMBER[phase], begun / _NS, at / _NS))
                case Event(kind="Run", object=run, at=at, reason=state):
                    self.said[run] = at / _NS, state == SUCCEEDED
                case Event(kind=kind, reason="PENDING", run=str(run), object=task, at=at) if kind == OF_TASK:
                    self.refused.append((run, task, at / _NS))
                case Node():
                    self.nodes.append(record)
                case Sample(metric=metric, labels=labels, value=value) if metric == UPLOAD_SECONDS:
                    self.uploaded[labels["task"]].append(value)
                case _:
                    pass

    def measures(self, until: float) -> Measures:
        runs = {run: k for k, run in enumerate(self.sent)}
        late = np.array([self.test.late_s[place] for place, _, _ in self.sent.values()])
        sent, answered = (np.array([each[k] for each in self.sent.values()]) for k in (1, 2))
        open_ = np.array([run not in self.over for run in runs], dtype=bool)
        over = np.array([self.over.get(run, until) for run in runs])
        total = over - sent + late
        phases, before = self._phases(runs, sent, answered, over, open_)
        phases[DISPATCH] = float(late.mean())
        checked = {name: sum(phases.get(part, 0.0) for part in parts) for name, parts in CHECKED.items()}
        scenarios = [self.test.arrivals[place].scenario for place, _, _ in self.sent.values()]
        tenants = [scenario.tenant for scenario in scenarios]
        last = until if open_.any() else float(over.max())
        hours = [max(0.0, min(last, _s(n.gone_at, last)) - n.created_at / _NS) / 3600 for n in self.nodes]
        prices = [nan if n.price is None else n.price for n in self.nodes]
        cost = sum(hour * price for hour, price in zip(hours, prices, strict=True))
        reported = [at - self.over[run] for run, (at, _) in self.said.items() if run in self.over]
        return Measures(
            runs=len(runs),
            lost=1 - (1 - self.test.rejected) * sum(ok for _, ok in self.said.values()) / len(self.test.arrivals),
            mean_s=float(total.mean()),
            p50_s=float(np.quantile(total, 0.5)),
            p95_s=float(np.quantile(total, 0.95)),
            makespan_s=last - min(a.due_s - s for a, s in zip(self.test.arrivals, self.test.late_s, strict=True)),
            phases=checked,
            pods=len(self.pods) / max(len(runs), 1) if self.pods else 1.0,
            reported_s=float(np.mean(reported)) if reported else 0.0,
            node_hours=sum(hours),
            cost=None if np.isnan(cost) else cost,
            tasks=self._tasks(),
            uploads={task: float(np.mean(each)) for task, each in self.uploaded.items()},
            before_s=before,
            waits=waits_for(
                self.profile, checked, self.pods, self.refused, dict(zip(runs, answered.tolist(), strict=True)),
                dict(zip(runs, over.tolist(), strict=True)), dict(zip(runs, tenants, strict=True)),
            ),
            most_per_node=self._most_per_node(until),
            tenants=by_tenant(tenants, total),
            fairness=fairness(tenants, [scenario.name for scenario in scenarios], total),
        )  # fmt: skip

    def _phases(
        self, runs: dict[str, int], sent: Floats, answered: Floats, over: Floats, open_: Bools
    ) -> tuple[dict[str, float], float]:
        """Mean seconds of a run by phase, and before its first pod; see `harness.analysis.waits.waits`."""
        row, phase, start, end = [], [], [], []
        for pod in self.pods:
            place = runs.get(pod.run)
            if place is None:
                continue
            for name, begun, ended in zip(pod.phases, pod.bounds, pod.bounds[1:], strict=False):
                assert begun is not None
                row.append(place)
                phase.append(_NUMBER[name])
                start.append(begun / _NS)
                end.append(over[place] if ended is None else ended / _NS)
        for run, number, begun_s, ended_s in self.executed:
            row.append(runs[run])
            phase.append(number)
            start.append(begun_s)
            end.append(ended_s)
        count = len(runs)
        of = segments_of(np.array(row, dtype=np.int64), np.array(phase), np.array(start), np.array(end))
        found = zip((*PRECEDENCE, CONTROLLER), np.bincount(of.level, of.length, len(PRECEDENCE) + 1), strict=True)
        first, last = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(first, of.row, of.start)
        np.maximum.at(last, of.row, of.end)
        had = np.isfinite(first)
        answered = np.where(over <= answered, np.fmin(answered, first), answered)  # the answer was the result
        before = np.where(had, first, over) - answered
        after = np.where(had, over - last, 0.0)
        seconds = {name: float(each) / count for name, each in found}
        seconds[SUBMIT] = float((answered - sent).mean())
        seconds[CONTROLLER] += float(before.mean() + np.where(open_, after, 0.0).mean())
        seconds[PUBLISHING] = float(np.where(open_, 0.0, after).mean())
        return seconds, float(before.mean())

    def _most_per_node(self, until: float) -> int:
        placed = [
            (pod.node, pod.bounds[k], pod.bounds[-1])
            for pod in self.pods
            if pod.node and (k := next((k for k, name in enumerate(pod.phases) if name in ON_NODE), -1)) >= 0
        ]
        ends = np.array([_s(end, until) for _, _, end in placed])
        return most_per_node(
            [node for node, _, _ in placed], np.array([_s(begun, until) for _, begun, _ in placed]), ends
        )

    def _tasks(self) -> dict[str, float]:
        found: defaultdict[str, list[float]] = defaultdict(list)
        for pod in self.pods:
            lasted = [
                (ended - begun) / _NS
                for name, begun, ended in zip(pod.phases, pod.bounds, pod.bounds[1:], strict=False)
                if name in {RUNNING, STORING} and begun is not None and ended is not None
            ]
            if lasted and pod.bounds[-1] is not None:
                found[pod.task].append(sum(lasted))
        return {task: float(np.mean(each)) for task, each in found.items()}


def _s(at: int | None, otherwise: float) -> float:
    return otherwise if at is None else at / _NS
