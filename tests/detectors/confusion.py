"""Detectors against the truth: faults planted in the simulated platform, and what the diagnosis says of them.

    python -m tests.detectors.confusion --seeds 10

prints, for each fault, how often it was the first finding and what was named instead. The simulation's records pass
through a run folder, as those of a real test do.
"""

import argparse
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.timeline import Timeline
from harness.detectors import diagnose
from harness.model import Event, Plan, Scenario
from harness.simulator.fast import Arrival, simulate
from harness.simulator.faults import FAULTS, parse_fault
from harness.simulator.profile_file import load_profile
from harness.store import RunFolder
from harness.store.tables import load, seal
from tests.simulator.platforms import UNCACHED

ORIGIN_AT = 1_790_000_000 * 10**9
CLEAN = "none"
# What the simulation's records do not show: CPU use (it has no metrics-server) and when an API was asked (it has none).
UNSEEN = frozenset({"cpu-starved", "agent-lag"})
SEEN = tuple(name for name in FAULTS if name not in UNSEEN)


@dataclass(frozen=True)
class Case:
    """One planted fault: its text for the simulator, and the load under which it shows."""

    fault: str
    runs: int = 90
    over_s: float = 60.0
    profile: str = "demo"


# A rate the platform is up to; what only shows under more gets more.
CASES = {name: Case(f"{name}@5s") for name in SEEN} | {
    "store-full": Case("store-full", runs=200, over_s=100.0),
    "api-throttled": Case("api-throttled", runs=100, over_s=5.0),
    "nodes-exhausted": Case("nodes-exhausted", runs=120, over_s=40.0),
    "autoscaler-at-max": Case("autoscaler-at-max", runs=160, over_s=40.0),
    "autoscaler-slow": Case("autoscaler-slow", runs=120, over_s=40.0),
    "parallelism-cap": Case("parallelism-cap"),
    "spot-evictions": Case("spot-evictions@25s"),
    CLEAN: Case(CLEAN),
}


def timeline(case: Case, seed: int, strength: float = 1.0) -> Timeline:
    """Simulate a case and read it back from its run folder."""
    fault = parse_fault(f"{case.fault}:{strength}") if case.fault != CLEAN else None
    spacing = case.over_s / case.runs
    arrivals = [Arrival(5.0 + k * spacing, Scenario(str(k), "planted", {}, {})) for k in range(case.runs)]
    records = simulate(
        load_profile(case.profile), UNCACHED, arrivals, faults=(fault,) if fault else (), seed=seed,
        origin_at=ORIGIN_AT, drain_s=300.0,
    )  # fmt: skip
    plan = Plan("kfp", "simulated", {"name": "spread"}, case.runs, seed, simulated=True, started_at=ORIGIN_AT)
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder.create(Path(place), "run")
        folder.write_plan(plan)
        with folder.recorder() as recorder:
            recorder.write(Event(ORIGIN_AT, "Test", "run", "Started"))
            for record in records:
                recorder.write(record)
        seal(folder)
        return Timeline.from_frames(folder.read_plan(), load(folder))


def named(case: Case, seed: int, strength: float = 1.0) -> list[str]:
    """The findings on the platform in their order; those on the test itself are left out."""
    ours = {"generator-lag", "missed-arrivals", "censoring", "observer-gaps", "too-few-samples"}
    return [finding.name for finding in diagnose(timeline(case, seed, strength)).findings if finding.name not in ours]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strengths", type=float, nargs="*", default=[1.0])
    parser.add_argument("--fault", choices=[*CASES], nargs="*", default=[*CASES])
    options = parser.parse_args()
    print(f"{'planted':34}{'first':>8}{'in 3':>8}   named instead")
    for name in options.fault:
        strengths = options.strengths if name != CLEAN else [1.0]
        found = [named(CASES[name], seed, strength) for seed in range(options.seeds) for strength in strengths]
        right = sum((order[:1] or [CLEAN])[0] == name for order in found)
        close = sum(name in (order[:3] or [CLEAN]) for order in found)
        instead = Counter((order or [CLEAN])[0] for order in found if (order[:1] or [CLEAN])[0] != name)
        said = ", ".join(f"{other} {count}" for other, count in instead.most_common(4))
        print(f"{name:34}{right / len(found):8.0%}{close / len(found):8.0%}   {said}", flush=True)


if __name__ == "__main__":
    main()
