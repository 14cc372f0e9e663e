"""Answers against closed forms: a platform with D = c + t N / M + s N + k N M, up to 10 % slower or faster."""

import math
from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.caps import Cap
from harness.analysis.capacity.model import AMDAHL, LINEAR, USL, CapacityModel, Draws, Law, Range

TESTED = Range((100.0, 400.0), (5.0, 100.0), (60.0, 6000.0), 6)
SCALING = {2: LINEAR, 3: AMDAHL, 4: USL}


def platform(*coefficients, tested=TESTED, caps=(), spread=0.1, noise=0.0):
    """Its quantiles of 5, 50 and 95 % are 0.91, 1 and 1.09 times the formula."""
    law = Law(SCALING[len(coefficients)])
    factors = np.linspace(1 - spread, 1 + spread, 101)
    draws = Draws(law, np.outer(factors, coefficients), np.zeros(101), 1.0, 1000.0)
    return CapacityModel((draws,), {law: 1.0}, tested, noise, tuple(caps))


def test_how_long_is_the_formula():
    found = answer(platform(60.0, 300.0), Question(runs=400, nodes=20))
    assert (found.low, found.value, found.high) == pytest.approx((0.91 * 6060, 6060, 1.09 * 6060))
    assert (found.asked, found.runs, found.nodes, found.within_s) == ("within_s", 400, 20, found.value)
    assert (found.binding, found.warnings, found.unit) == ("nodes", (), "node")


@pytest.mark.parametrize(
    ("runs", "within_s", "nodes"),
    [
        (400, 1260.0, 100),  # 60 + 300 * 400 / 100
        (400, 2400.0, 52),
        (400, 60 + 120_000 / 63, 63),
        (400, 60 + 120_000 / 64, 64),
        (100, 1e6, 1),
        (100, 15_060.0, 2),
        (1_000_000, 60 + 300_000_000 / 20_000, 20_000),
        (1_000_000, 60 + 300_000_000 / 40_000, None),  # more than are tried
        (400, 60.0, None),
    ],
)
def test_how_many_nodes_is_the_least_number_whose_duration_is_short_enough(runs, within_s, nodes):
    found = answer(platform(60.0, 300.0), Question(runs=runs, within_s=within_s))
    for end, factor in ((found.low, 0.91), (found.value, 1.0), (found.high, 1.09)):
        left_s = within_s / factor - 60
        least = math.ceil(300 * runs / left_s * (1 - 1e-9)) if left_s > 0 else math.inf
        assert end == (least if least < 30_000 else None)
    assert (found.asked, found.nodes, found.runs, found.within_s) == ("nodes", nodes, runs, within_s)


@pytest.mark.parametrize(
    ("nodes", "within_s", "runs"),
    [
        (20, 3060.0, 200),
        (20, 75.0, 1),  # which takes 82 s or more in one of twenty tests
        (20, 60.0, 0),
        (100, 300_060.0, 100_000),
    ],
)
def test_how_many_runs_is_the_greatest_number_that_is_over_in_time(nodes, within_s, runs):
    found = answer(platform(60.0, 300.0), Question(nodes=nodes, within_s=within_s))
    for end, factor in ((found.low, 1.09), (found.value, 1.0), (found.high, 0.91)):
        assert end == max(math.floor((within_s / factor - 60) * nodes / 300 * (1 + 1e-9)), 0)
    assert (found.asked, found.runs, found.nodes, found.within_s) == ("runs", runs, nodes, within_s)


def test_the_runs_of_a_platform_without_limit_end_at_a_number():
    found = answer(platform(60.0, 0.0), Question(nodes=20, within_s=100.0))
    assert found.value >= 10**9 / 2


def test_of_nodes_that_get_in_each_others_way_the_first_number_that_suffices_is_the_answer():
    """D = 30 + 30,000 / M + 10 M: the best is 54.8 nodes with 1,125 s."""
    model = platform(30.0, 300.0, 0.0, 0.1, spread=0.0)
    assert answer(model, Question(runs=100, within_s=1330.0)).value == 30
    assert answer(model, Question(runs=100, within_s=1126.0)).value == 54
    assert answer(model, Question(runs=100, within_s=1120.0)).value is None


@pytest.mark.parametrize(
    ("coefficients", "question", "binding"),
    [
        ((60.0, 300.0), Question(runs=400, nodes=20), "nodes"),
        ((60.0, 300.0), Question(runs=4, nodes=60), "start-up"),
        ((1.0, 300.0, 5.0), Question(runs=400, nodes=100), "contention"),
        ((1.0, 300.0, 5.0), Question(runs=400, within_s=10_000.0), "nodes"),  # on 15 nodes, 20 s of 25 s a run
        ((1.0, 300.0, 5.0, 0.1), Question(runs=400, nodes=100), "coherency"),
        # No answer: what more nodes do not shorten, at ten times the tested nodes, or at the least runs tested.
        ((60.0, 300.0, 5.0), Question(runs=400, within_s=100.0), "contention"),
        ((6000.0, 300.0, 5.0), Question(runs=400, within_s=100.0), "start-up"),
        ((60.0, 300.0, 5.0, 0.01), Question(runs=400, within_s=100.0), "coherency"),  # 0.01 * 1,000 nodes > 5
        ((60.0, 300.0, 5.0, 0.001), Question(runs=400, within_s=100.0), "contention"),
        ((600.0, 300.0, 5.0), Question(nodes=20, within_s=100.0), "start-up"),
        ((400.0, 300.0, 5.0), Question(nodes=20, within_s=100.0), "contention"),  # 5 * 100 runs > 400
    ],
)
def test_what_takes_most_of_the_time_binds(coefficients, question, binding):
    assert answer(platform(*coefficients), question).binding == binding


FEW = "fitted on 3 observations: the interval assumes the usual variation between tests (10%)"


@pytest.mark.parametrize(
    ("tested", "question", "warnings"),
    [
        (TESTED, Question(runs=800, nodes=200), ()),
        (TESTED, Question(runs=801, nodes=50), ("extrapolated: 801 runs, 2.0 times the observed maximum (400)",)),
        (TESTED, Question(runs=5000, nodes=50), ("extrapolated: 5,000 runs, 12 times the observed maximum (400)",)),
        (TESTED, Question(runs=4000, nodes=50), ("extrapolated: 4,000 runs, 10.0 times the observed maximum (400)",)),
        (TESTED, Question(runs=400, nodes=250), ("extrapolated: 250 nodes, 2.5 times the observed maximum (100)",)),
        (TESTED, Question(runs=50, nodes=2.5), ()),
        (TESTED, Question(runs=49, nodes=5), ("extrapolated: 49 runs, less than half the observed minimum (100)",)),
        (TESTED, Question(runs=100, nodes=2), ("extrapolated: 2 nodes, less than half the observed minimum (5)",)),
        (replace(TESTED, unit="replica"), Question(runs=100, nodes=1),
         ("extrapolated: 1 replica, less than half the observed minimum (5)",)),
        (TESTED, Question(runs=400, within_s=50.0),
         ("no number of nodes suffices: the time that more nodes do not shorten is already too long",)),
        (TESTED, Question(runs=100, within_s=63.0),
         ("extrapolated: 10,000 nodes, 100 times the observed maximum (100)",
          "the interval has no upper end: possibly no number of nodes suffices")),
        (TESTED, Question(nodes=20, within_s=60.0), ("not even one run ends in this time",)),
        (replace(TESTED, observations=4), Question(runs=400, nodes=20), ()),
        (replace(TESTED, observations=3), Question(runs=400, nodes=20), (FEW,)),
        (replace(TESTED, observations=1), Question(runs=400, nodes=20), ("fitted on 1 observation: ",)),
        (replace(TESTED, runs=(400.0, 400.0)), Question(runs=400, nodes=20), ()),
        (replace(TESTED, runs=(400.0, 400.0)), Question(runs=500, nodes=20), (
            "all observations have 400 runs: whether more runs take longer at what all nodes share is unknown",)),
        (replace(TESTED, nodes=(20.0, 20.0)), Question(runs=400, nodes=20), ()),
        (replace(TESTED, nodes=(20.0, 20.0)), Question(runs=400, nodes=21),
         ("all observations are on 20 nodes: the effect of more is a guess",)),
    ],
)  # fmt: skip
def test_an_answer_names_its_limits(tested, question, warnings):
    found = answer(platform(60.0, 300.0, tested=tested), question).warnings
    assert len(found) == len(warnings)
    assert all(told.startswith(expected) for told, expected in zip(found, warnings, strict=True))


PARALLELISM = Cap("parallelism", "the parallelism of 4", 360.0, math.inf, "4 runs at once")  # 10 s a run
QUOTA = Cap("quota", "the quota of 8 pods", 720.0, math.inf, "8 pods at once")
AUTOSCALER = Cap("autoscaler", "the autoscaler's maximum of 50 nodes", math.inf, 50.0, "train 50")
VOLUME = Cap("volume data", "the volume data", math.inf, math.inf, "15 GiB were left", 500.0)


@pytest.mark.parametrize(
    ("caps", "question", "binding", "warnings"),
    [
        # 60 + 15 N on 20 nodes is always more than 10 N; 60 + 3 N on 100 nodes is less above 8.6 runs.
        ((PARALLELISM,), Question(runs=400, nodes=20), "nodes", ()),
        ((PARALLELISM,), Question(runs=400, nodes=100), "parallelism",
         ("above 8 runs on 100 nodes the parallelism of 4 binds: 4 runs at once",)),
        ((QUOTA, PARALLELISM), Question(runs=400, nodes=100), "parallelism",
         ("above 8 runs on 100 nodes the parallelism of 4 binds: 4 runs at once",)),
        # 60 + 9.9 N is less above 600 runs, by halves of a thousandth.
        ((PARALLELISM,), Question(runs=400, nodes=300 / 9.9), "nodes",
         ("above 600 runs on 30.3 nodes the parallelism of 4 binds: 4 runs at once",)),
        ((PARALLELISM,), Question(runs=400, within_s=1000.0), "parallelism",
         ("no number of nodes suffices: the time that more nodes do not shorten is already too long",
          "above 6 runs, on any number of nodes, the parallelism of 4 binds: 4 runs at once")),
        ((AUTOSCALER,), Question(runs=400, nodes=50), "nodes", ()),
        ((AUTOSCALER,), Question(runs=400, nodes=51), "nodes",
         ("51 nodes aren't available: the autoscaler's maximum of 50 nodes (train 50)",)),
        ((VOLUME,), Question(runs=51, nodes=20), "nodes",
         ("above 500 runs the volume data is full unless something is removed: 15 GiB were left",)),
        ((VOLUME,), Question(runs=50, nodes=20), "nodes", ()),
    ],
)  # fmt: skip
def test_caps_bind_from_the_size_on_that_is_told(caps, question, binding, warnings):
    found = answer(platform(60.0, 300.0, caps=caps, spread=0.0), question)
    assert (found.binding, found.warnings) == (binding, warnings)


def test_a_cap_decides_how_long_and_how_many():
    model = platform(60.0, 300.0, caps=[PARALLELISM], noise=0.1)
    took = answer(model, Question(runs=400, nodes=100))
    assert took.value == pytest.approx(4000.0)
    assert (took.low, took.high) == pytest.approx([4000 * math.exp(z * 2**0.5 * 0.1) for z in (-1.644854, 1.644854)])
    assert answer(model, Question(nodes=100, within_s=4000.0)).value == 400


def test_what_answers_in_place_of_the_model_is_asked_and_its_caps_are_not_the_models():
    asked = []

    def ask(question):
        asked.append(question)
        return 5.0, 6.0, None

    question = Question(runs=400, within_s=1000.0)
    found = answer(platform(60.0, 300.0, caps=[PARALLELISM, VOLUME]), question, ask)
    assert asked == [question]
    assert (found.low, found.value, found.high, found.nodes) == (5.0, 6.0, None, 6.0)
    assert found.binding == "nodes"
    assert found.warnings == ("the interval has no upper end: possibly no number of nodes suffices",)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Question(runs=1), "exactly two"),
        (Question(1, 2, 3), "exactly two"),
        (Question(), "exactly two"),
        (Question(runs=0, nodes=1), "above 0"),
        (Question(nodes=1, within_s=-1.0), "above 0"),
        (Question(runs=1, within_s=0.0), "above 0"),
    ],
)
def test_a_question_gives_two_quantities_above_0(question, why):
    with pytest.raises(ValueError, match=why):
        answer(platform(60.0, 300.0), question)
