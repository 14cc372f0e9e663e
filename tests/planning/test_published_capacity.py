"""A table of a load test of Kubeflow Pipelines that others published: each size is predicted from smaller ones.

Source: Microsoft's kubemlops, docs/performance-testing.md (docs/diagrams/perf-test-chart.png) at 4cdb1c7f: a training
pipeline at once for 1 to 1,000 scenarios, on AKS with an autoscaled pool of up to 20 nodes.
"""

import pytest

from harness.planning.capacity import answer_from

PUBLISHED = ((1, 1, 8), (20, 20, 11), (62, 20, 27), (200, 20, 80), (500, 20, 206), (1000, 20, 395))


@pytest.mark.parametrize("known", [3, 4, 5])
def test_a_published_table_is_continued_within_15_percent(known, tmp_path):
    table = tmp_path / "table.csv"
    rows = (f"{runs},{nodes},{minutes}m" for runs, nodes, minutes in PUBLISHED[:known])
    table.write_text("\n".join(("runs,nodes,duration", *rows)))
    for runs, nodes, minutes in PUBLISHED[known:]:
        found = answer_from([table], {"runs": [runs], "nodes": [nodes]}).first
        assert found.value == pytest.approx(60 * minutes, rel=0.15), runs
        assert found.low < 60 * minutes < found.high, runs
