"""What findings could not see: the times in which the cluster was not observed."""

from harness.analysis.timeline import remembered
from harness.detectors.detector import Capability, Evidence, Timeline, counted
from harness.model.phases import GAP

OF_KUBERNETES = frozenset({Capability.PODS, Capability.NODES, Capability.POD_EVENTS})


@remembered
def gaps(timeline: Timeline) -> tuple[Evidence, ...]:
    """One statement for findings that rest on pods, nodes or their events; empty where the observation is whole."""
    events = timeline.events
    missed = events[((events["kind"] == "Observer") & (events["reason"] == GAP)).to_numpy(dtype=bool)]
    missed = missed[missed["object"].str.startswith("kubernetes").to_numpy(dtype=bool)]
    if not len(missed):
        return ()
    name, message = str(missed["object"].iat[0]), str(missed["message"].iat[0])
    text = f"not seen: what happened in {counted(len(missed), 'gap')} of the observation ({name}: {message})"
    return (Evidence(text, float(len(missed)), "", "events", "kind = Observer"),)
