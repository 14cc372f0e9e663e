from harness.analysis.waits.tasks import quickest_s
from harness.model import Span
from harness.model.phases import FAILED, PULLING, RUNNING
from tests.support.timelines import Story, at


def test_the_quickest_run_of_a_step_counts_its_longest_pod(tmp_path):
    told = Story(intended=3)
    for seq, (lost_s, took_s, state) in enumerate(
        [(1.0, 20.0, "SUCCEEDED"), (2.0, 12.0, "SUCCEEDED"), (1.0, 3.0, FAILED)]
    ):
        run = told.submit(seq)
        told.pod(run, "train", "n", (PULLING, 0, 5), (RUNNING, 5, 5 + lost_s))
        again = Span(run, f"{run}-again", RUNNING, at(10.0), at(10.0 + took_s), "train", 1, "n", "kubernetes", 1.0)
        told.records.append(again)
        told.run(run, 0.0, 61.0, state)
    assert quickest_s(told.timeline(tmp_path)) == {"train": 12.0}


def test_without_pods_nothing_is_known(tmp_path):
    told = Story(intended=1)
    told.run(told.submit(0), 0.0, 9.0)
    assert quickest_s(told.timeline(tmp_path)) == {}
