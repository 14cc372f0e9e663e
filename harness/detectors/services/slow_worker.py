"""One replica of the runtime computes the same work more slowly than the others."""

import numpy as np

from harness.analysis.services.executions import executions
from harness.analysis.services.saturation import saturation
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, by_chance, format_duration, slowed
from harness.detectors.services.replicas import UNNAMED
from harness.model.findings import Evidence, Finding
from harness.model.phases import COMPUTING

NAME = "slow-worker"
NEEDS = (Capability.EXECUTIONS,)

_MIN_RATIO = 1.5  # times as long as the other replicas: less has many causes
_MAX_CHANCE = 1e-3  # with as many tests as there are replicas
_MIN_EXECUTIONS = 3  # executions: a slow replica may get few of them


def detect(timeline: Timeline) -> list[Finding]:
    """Computing times by replica: the slowest against all others together (Mann and Whitney 1947)."""
    from scipy.stats import mannwhitneyu

    done = executions(timeline)
    groups = done.by_replica(done.computing, _MIN_EXECUTIONS)
    if len(groups) < 2:
        raise CannotJudgeError(UNNAMED if not done.replicas else "fewer than two replicas ran enough executions")
    name = max(groups, key=lambda group: float(np.median(groups[group])))
    mine = groups[name]
    others = np.concatenate([values for other, values in groups.items() if other != name])
    slow, usual = float(np.median(mine)), float(np.median(others))
    # The slowest of several is one of them by chance (Bonferroni).
    chance = min(1.0, len(groups) * float(mannwhitneyu(mine, others, alternative="greater").pvalue))
    if slow < _MIN_RATIO * usual or chance > _MAX_CHANCE:
        return []
    at_it = done.replica == done.replicas.index(name)
    whole = max(float(done.inside.sum()), 1e-9)
    held = float(done.inside[at_it].sum()) / whole
    # Executions there would take as long as elsewhere; or, where waiting is the same everywhere, all would wait less.
    longer = float(done.inside[at_it].mean() - done.inside[~at_it].mean()) * mine.size / whole
    slower = (slow - usual) * mine.size / whole
    gain = max(longer, slower + saturation(timeline).waiting * (1 - usual / slow) / len(groups))
    return [
        Finding(
            NAME,
            f"Replica {name} is slow: computing takes {slow / max(usual, 1e-9):.1f} times as long as elsewhere",
            0.92,
            (
                Evidence(
                    f"computing took {format_duration(slow)} there and {format_duration(usual)} elsewhere (medians; "
                    f"{by_chance(chance)})",
                    slow, "s", "spans", f"phase = {COMPUTING} and node = {name}",
                ),
                Evidence(
                    f"{mine.size:,} of {done.row.size:,} executions and {held:.0%} of all runtime time were there",
                    held, "share", "spans", f"node = {name}",
                ),
            ),
            "Check its node: other pods, a lower CPU limit, throttling, another machine type. With least-connections "
            "balancing, a slow replica gets less work.",
            ("kubectl top nodes", "kubectl get pods -A -o wide --field-selector status.phase=Running | grep runtime"),
            slowed(gain),
        )
    ]  # fmt: skip
