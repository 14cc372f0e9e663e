"""Simulation as fast as it goes: arrivals in, the records of a run folder out.

The records are those of a test against the served platform, but exact: no timestamp is rounded, no change is missed
between polls, and the same seed gives the same records.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.simulator.engine.calendar import Calendar
from harness.simulator.fast.executions import simulate_executions
from harness.simulator.fast.recorder import Recorder
from harness.simulator.fast.records import Arrival, Compact
from harness.simulator.fast.runs import SAMPLE_S, simulate_runs
from harness.simulator.fast.submitting import is_argo, pipelines, workflows
from harness.simulator.faults import inject
from harness.simulator.platform import Platform
from harness.simulator.profile import FaultPlan, Profile


def simulate_compactly(
    profile: Profile,
    package: bytes,
    arrivals: Sequence[Arrival],
    *,
    faults: Sequence[FaultPlan] = (),
    seed: int = 0,
    origin_at: int = 0,
    drain_s: float = 86_400.0,
    sample_s: float = SAMPLE_S,
) -> Iterator[Compact]:
    """Simulate a platform under these arrivals; the spans of a pod are one record.

    Args:
        profile: the platform's settings.
        package: the compiled pipeline (IR YAML); for Argo, the manifest of a workflow, followed by the templates and
            ConfigMaps that it needs; for hetida designer, the exported transformation.
        arrivals: sorted by due time.
        faults: injected besides those of the profile.
        seed: random seed.
        origin_at: UTC ns at which simulated time begins.
        drain_s: simulated seconds after the last arrival; runs that take longer stay open.
        sample_s: simulated seconds between samples of store, nodes and listing.

    Raises:
        ConfigError: the profile names an unknown fault, or the package is none that the simulated platform can run.
    """
    calendar, horizon = Calendar(origin_at), (arrivals[-1].due_s if arrivals else 0.0) + drain_s
    with without_collections():
        recorder = Recorder(origin_at)
        platform = Platform(profile, seed, recorder)
        recorder.follow(platform)
        for fault in (*profile.faults, *faults):
            inject(platform, fault)
        if platform.hetida is not None:
            yield from simulate_executions(platform, package, arrivals, calendar, horizon)
        else:
            submit = (workflows if is_argo(package) else pipelines)(platform, package)
            yield from simulate_runs(recorder, submit, arrivals, calendar, horizon, sample_s)


@contextmanager
def without_collections() -> Iterator[None]:
    """Disable garbage collection, which costs a third of the time: reference counting frees what a simulation drops."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            # Moves the new objects to the oldest generation: scanning them now would find next to no garbage.
            gc.freeze()
            gc.unfreeze()
            gc.enable()
