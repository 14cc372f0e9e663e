"""The observation has holes: what happened in them is not in the record."""

from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import GAP
from harness.model.units import format_duration

NAME = "observer-gaps"
NEEDS = (RUNS,)


def detect(timeline: Timeline) -> list[Finding]:
    """What the observer said of itself."""
    events = timeline.events
    gaps = events[(events["kind"] == "Observer") & (events["reason"] == GAP)]
    if not len(gaps):
        return []
    facts = [
        Evidence(f"{format_duration(at)} into the test, {name}: {message}", at, "s", "events", "kind = Observer")
        for at, name, message in zip(floats(gaps, "at_s").tolist(), gaps["object"], gaps["message"], strict=True)
    ]
    return [
        Finding(
            NAME,
            f"The observation has {len(gaps)} gaps; what happened in them may be missing here",
            0.9,
            tuple(facts[:5]),
            "See that the observer's machine reaches the API servers during the whole test.",
            (),
            slowed(0.1),
        )
    ]
