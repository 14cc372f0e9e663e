"""Runs of which only pods are known: no API lists them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.collectors.kubernetes.pod.life import STUCK
from harness.model import Event, Span, counted
from harness.model.argo.nodes import DRIVER_SUFFIX
from harness.model.phases import FAILED, INFERRED, RUN, SUCCEEDED, TASK, is_workload

_SOURCE = "inferred"
_SLACK_NS = 2 * 10**9  # of stamps in whole seconds


def inferred_runs(spans: Sequence[Span], events: Iterable[Event]) -> Iterator[Span | Event]:
    """A run as a whole for each run of pods without one, its end, and a note of how many there are.

    It lasts from its first pod to the end of its last. It failed where a pod did that was not tried again, and is going
    on while a pod is.
    """
    latest = {(span.run, span.step, span.phase, span.attempt): span for span in spans}
    listed = {span.run for span in spans if span.phase == RUN}
    pods: dict[str, dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for span in latest.values():
        if span.step and span.run not in listed and span.phase != TASK and not is_workload(span.run):
            pods[span.run][span.step].append(span)
    # A failure that a pod's state shows has no namespace; events of the cluster have one.
    failed = {e.object for e in events if e.kind == "Pod" and e.run and not e.namespace and e.reason not in STUCK}
    for run, of_run in sorted(pods.items()):
        yield from _run(run, of_run, failed)
    if pods:
        what = f"{counted(len(pods), 'run')} of {len(pods) + len(listed):,} are inferred from their pods"
        text = f"{what}: no API lists them for this time. They last from the first pod to the end of the last one."
        yield Event(min(span.started_at for span in spans), "Observer", "runs", INFERRED, text, _SOURCE)


def _run(run: str, pods: Mapping[str, Sequence[Span]], failed: set[str]) -> Iterator[Span | Event]:
    every = [span for of_pod in pods.values() for span in of_pod]
    ends = [span.ended_at for span in every]
    begun_at, resolution_s = min(span.started_at for span in every), max(span.resolution_s for span in every)
    ended_at = max((at for at in ends if at is not None), default=None) if None not in ends else None
    yield Span(run, "", RUN, begun_at, ended_at, task=run, source=_SOURCE, resolution_s=resolution_s)
    if ended_at is None:
        return
    bad = [name for name in sorted(failed & pods.keys()) if not _tried_again(name, pods)]
    state, text = (FAILED, f"{', '.join(bad[:3])} failed") if bad else (SUCCEEDED, "")
    yield Event(ended_at, "Run", run, state, text, _SOURCE, run, type="Warning" if bad else "Normal")


def _tried_again(pod: str, pods: Mapping[str, Sequence[Span]]) -> bool:
    """Whether a pod of the same step began after its end."""
    task, ended_at = pods[pod][0].task, max(span.ended_at or span.started_at for span in pods[pod])
    others = (of_pod[0] for name, of_pod in pods.items() if name != pod)
    return any(span.task == task and span.started_at >= ended_at for span in others)


def runs_of_workflows(
    pods: Mapping[str, tuple[str, str]], begun_at: Mapping[str, int], spans: Iterable[Span]
) -> dict[str, str]:
    """The platform's runs of Argo workflows whose pods have no label with the run's id.

    By a pod that an API still shows; KFP's runs without any by time: the controller starts one after the other.

    Args:
        pods: workflow and task of pods by name.
        begun_at: when the first pod of each workflow was created, UTC ns.
        spans: that the APIs showed.
    """
    shown = {span.step: span.run for span in spans if span.step and span.phase != TASK}
    found = {workflow: shown[pod] for pod, (workflow, _) in pods.items() if pod in shown}
    runs = {span.run: span for span in spans if span.phase == RUN}.values()
    taken = {*found.values(), *begun_at}
    waiting = sorted((span for span in runs if span.run not in taken), key=lambda span: span.started_at)
    of_kfp = {workflow for workflow, task in pods.values() if task.endswith(DRIVER_SUFFIX)}
    for workflow in sorted(of_kfp - found.keys(), key=lambda each: begun_at[each]):
        at = begun_at[workflow]
        run = next((s for s in waiting if s.started_at - _SLACK_NS <= at <= (s.ended_at or at)), None)
        if run is not None:
            waiting.remove(run)
            found[workflow] = run.run
    return found
