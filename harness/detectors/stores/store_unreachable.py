"""Steps can't reach the artifact store, typically on nodes that are older than its last restart."""

from dataclasses import dataclass

from harness.analysis.services.volumes import volumes
from harness.analysis.waits.failures import Failure
from harness.analysis.waits.stated import failed_for, failures_for, words_of
from harness.detectors.detector import DRAIN_OPTIONS, CannotJudgeError, Capability, Timeline, broke, counted, shell_word
from harness.detectors.error_texts import require_reasons
from harness.detectors.stores.store_failures import share_of_runs, short
from harness.model.findings import Evidence, Finding

NAME = "store-unreachable-from-old-nodes"
NEEDS = (Capability.RUNS,)
USES = {
    Capability.PODS: "from which nodes",
    Capability.NODES: "whether these are the older ones",
    Capability.STORE: "that the volume had room",
    Capability.LOGS: "the error of the store's client",
}

_MIN_RATE_THERE, _MAX_RATE_ELSEWHERE = 0.5, 0.05
_ROWS = ("store-unreachable", "store-unwritten")  # of the catalogue
_CHECK = (
    "Check that the store's pod runs, that its service has endpoints, and that no network policy blocks the steps. If "
    "its pod was restarted, replace the steps' nodes: their connections stay broken."
)
_REPLACE = (
    "Replace these nodes, or scale the pool to zero and let the autoscaler add new ones: their connections to the "
    "store broke when its pod was restarted, and stay broken."
)


@dataclass(frozen=True, slots=True)
class Side:
    """A group of nodes: how many of their runs failed because the store was unreachable, and how many ran in all."""

    nodes: tuple[str, ...]
    failed: int
    runs: int

    @property
    def rate(self) -> float:
        """The share of the runs that failed."""
        return self.failed / max(self.runs, 1)


def detect(timeline: Timeline) -> list[Finding]:
    """Outputs could not be written though the volume had room: the store was unreachable, at least from some nodes."""
    lost = failures_for(timeline, *_ROWS)
    if not lost:
        require_reasons(timeline)
    watched = [volume for volume in volumes(timeline) if volume.of_store]
    if not lost or any(volume.full for volume in watched):
        return []
    unreached = bool(failed_for(timeline, _ROWS[0]))
    if not unreached and not any(f.nodes for f in lost):
        raise CannotJudgeError("the nodes of the failed steps were not observed")
    bad, good = _sides(timeline, lost)
    share = share_of_runs(timeline, lost)
    split = bool(bad.nodes) and bad.rate >= _MIN_RATE_THERE and good.rate <= _MAX_RATE_ELSEWHERE and good.runs > 0
    example = words_of(timeline, *_ROWS)
    where = f" from {counted(len(bad.nodes), 'node')}" if split else ""
    facts = [
        Evidence(f"{len(lost):,} runs failed with “{short(example)}”", float(len(lost)), "runs", "events", "kind = Run")
    ]
    if split:
        facts.append(
            Evidence(
                f"{bad.failed:,} of {bad.runs:,} runs on {', '.join(bad.nodes[:8])} failed this way; "
                f"{good.failed:,} of {good.runs:,} on the {counted(len(good.nodes), 'other node')}",
                bad.rate, "share", "spans", "node",
            )
        )  # fmt: skip
        facts += _age(timeline, bad, good)
    drain = f"kubectl drain {' '.join(map(shell_word, bad.nodes))} {DRAIN_OPTIONS}"
    return [
        Finding(
            NAME,
            f"Steps can't reach the artifact store{where}: {share:.0%} of the runs failed",
            0.9 if split else 0.8 if unreached else 0.55 if watched else 0.3,
            tuple(facts),
            _REPLACE if split else _CHECK,
            (drain,) if split else (f"kubectl get pods,endpointslices -n {timeline.namespace}",),
            broke(share),
        )
    ]


def _sides(timeline: Timeline, lost: list[Failure]) -> tuple[Side, Side]:
    """The nodes on which most runs fail because the store is unreachable, and the others."""
    failed: dict[str, set[int]] = {}
    for failure in lost:
        for node in failure.nodes:
            failed.setdefault(node, set()).add(failure.row)
    pods = timeline.pods[(timeline.pods["row"] >= 0) & (timeline.pods["node"] != "")]
    runs = {str(node): set(rows) for node, rows in pods.groupby("node", sort=True)["row"]}
    bad = {node for node, rows in runs.items() if len(failed.get(node, ())) >= _MIN_RATE_THERE * len(rows)}

    def side(names: set[str]) -> Side:
        return Side(
            tuple(sorted(names)),
            sum(len(failed.get(name, ())) for name in names),
            sum(len(runs[name]) for name in names),
        )

    return side(bad), side(set(runs) - bad)


def _age(timeline: Timeline, bad: Side, good: Side) -> list[Evidence]:
    """One fact when all bad nodes are older than all others; else none."""
    created = timeline.nodes.set_index("name")["created_s"]
    old, new = created.reindex(bad.nodes).max(), created.reindex(good.nodes).min()
    if old < new:
        return [Evidence("all of these nodes are older than all other nodes", None, "", "nodes", "created_at")]
    return []
