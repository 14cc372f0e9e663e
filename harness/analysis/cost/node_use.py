"""CPU utilisation of the nodes."""

import numpy as np
import orjson
import pandas as pd

from harness.analysis.timeline import Timeline, floats
from harness.model.phases import NODE_CPU_CORES


def node_use(timeline: Timeline) -> pd.DataFrame:
    """One row per sample of a node that can run the runs' pods.

    Returns:
        Columns `at_s` (seconds after t0), `node` and `share` (of its allocatable cores).
    """
    samples = timeline.metric(NODE_CPU_CORES)
    node = [str(orjson.loads(labels).get("node", "")) for labels in samples["labels"]]
    cores = timeline.run_nodes.set_index("name")["cpu"].reindex(node).to_numpy(dtype=np.float64, na_value=np.nan)
    share = floats(samples, "value") / cores
    use = pd.DataFrame({"at_s": floats(samples, "at_s"), "node": node, "share": share})
    return use.iloc[np.flatnonzero(np.isfinite(share))]
