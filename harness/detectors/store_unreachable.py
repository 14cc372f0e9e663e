"""Steps on some nodes can't reach the artifact store, as is known from nodes older than the store's last restart."""

from dataclasses import dataclass

from harness.analysis.services.volumes import volumes
from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures
from harness.detectors.detector import RUNS, CannotJudgeError, broke
from harness.detectors.store_full import DRAINING, FULL, UNREACHED, UNWRITTEN
from harness.model.findings import Evidence, Finding

NAME = "store-unreachable-from-old-nodes"
NEEDS = (RUNS,)

_OFTEN, _SELDOM = 0.5, 0.05
_LOOK = (
    "See that the store's pod runs, that its service has endpoints, and that no network policy keeps steps from it. If "
    "its pod was restarted, renew the nodes of the steps: their connections stay broken."
)
_RENEW = (
    "Renew these nodes (or scale the pool to zero and let the autoscaler bring new ones): their connections to "
    "the store broke when its pod was restarted and stay broken."
)


@dataclass(frozen=True, slots=True)
class Side:
    """Nodes with their runs that failed for want of the store, and all their runs."""

    nodes: tuple[str, ...]
    failed: int
    runs: int

    @property
    def rate(self) -> float:
        """Share of its runs that failed."""
        return self.failed / max(self.runs, 1)


def detect(timeline: Timeline) -> list[Finding]:
    """Outputs could not be written or read, the store's volume had room, and nobody answered or some nodes had none."""
    said = [f for f in failures(timeline) if f.says(UNWRITTEN) and not f.says(FULL)]
    if not said or any(volume.full for volume in volumes(timeline)):
        return []
    dialled = any(f.says(UNREACHED) for f in said)
    if not dialled and not any(f.nodes for f in said):
        raise CannotJudgeError("which nodes the failed steps ran on was not observed")
    bad, good = _sides(timeline)
    share = len(said) / max(len(timeline.runs), 1)
    split = bool(bad.nodes) and bad.rate >= _OFTEN and good.rate <= _SELDOM and good.runs > 0
    example = next(t for f in said for t in f.texts if UNWRITTEN.search(t))
    where = f" from {len(bad.nodes)} nodes" if split else ""
    facts = [
        Evidence(f"{len(said):,} runs failed with “{example[:220]}”", float(len(said)), "runs", "events", "kind = Run")
    ]
    if split:
        facts.append(
            Evidence(
                f"on {', '.join(bad.nodes[:8])}: {bad.failed:,} of {bad.runs:,} runs failed so; "
                f"on the {len(good.nodes)} other nodes {good.failed:,} of {good.runs:,}",
                bad.rate, "share", "spans", "node",
            )
        )  # fmt: skip
        facts += _age(timeline, bad, good)
    drain = f"kubectl drain {' '.join(bad.nodes)} {DRAINING}"
    return [
        Finding(
            NAME,
            f"Steps can't reach the artifact store{where}: {share:.0%} of the runs failed",
            0.9 if split else 0.8 if dialled else 0.55 if volumes(timeline) else 0.3,
            tuple(facts),
            _RENEW if split else _LOOK,
            (drain,) if split else (f"kubectl get pods,endpointslices -n {timeline.namespace}",),
            broke(share),
        )
    ]


def _sides(timeline: Timeline) -> tuple[Side, Side]:
    """The nodes on which most runs fail for want of the store, and the others."""
    failed: dict[str, set[int]] = {}
    for failure in failures(timeline):
        if failure.says(UNWRITTEN):
            for node in failure.nodes:
                failed.setdefault(node, set()).add(failure.row)
    pods = timeline.pods[(timeline.pods["row"] >= 0) & (timeline.pods["node"] != "")]
    runs = {str(node): set(rows) for node, rows in pods.groupby("node", sort=True)["row"]}
    bad = {node for node, rows in runs.items() if len(failed.get(node, ())) >= _OFTEN * len(rows)}

    def side(names: set[str]) -> Side:
        return Side(
            tuple(sorted(names)),
            sum(len(failed.get(name, ())) for name in names),
            sum(len(runs[name]) for name in names),
        )

    return side(bad), side(set(runs) - bad)


def _age(timeline: Timeline, bad: Side, good: Side) -> list[Evidence]:
    """Whether the bad nodes are the older ones."""
    created = timeline.nodes.set_index("name")["created_s"]
    old, new = created.reindex(bad.nodes).max(), created.reindex(good.nodes).min()
    if old < new:
        return [Evidence("every one of these nodes is older than every other one", None, "", "nodes", "created_at")]
    return []
