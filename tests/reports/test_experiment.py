"""What an experiment says of its variants."""

import pytest

from harness.model.experiment import Experiment, Point, Question, Result
from harness.planning.comparison import compare_results
from reports.experiment import CompletedExperiment, sentences

JUDGED = "Judged by: makespan (s), named in advance."


@pytest.mark.parametrize(("repetitions", "judged"), [(6, 1), (1, 0)])
def test_it_names_the_metric_to_judge_by_before_what_it_found(repetitions, judged):
    plan = Experiment(Question.GRID, ("files", "memory"), (3,), (1,), repetitions)
    results = tuple(
        Result(
            Point(variant, 3, 1, repetition), met=True,
            values={"makespan (s)": 10.0 * number + repetition, "cost": 1.0 + number + repetition},
        )
        for number, variant in enumerate(plan.variants, 1)
        for repetition in range(repetitions)
    )  # fmt: skip
    found = sentences(CompletedExperiment("e", plan, (), results, "makespan (s)", (), compare_results(plan, results)))
    assert sum(JUDGED in each for each in found) == judged
    if judged:
        assert JUDGED in found[0]
        assert found[1].startswith("makespan (s)")
