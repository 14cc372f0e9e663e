"""What each worker of a test sends."""

from array import array

from harness.model import Plan, Scenario
from harness.plan.assignment import Assignment

S = 10**9


def whole(arrivals: int) -> Assignment:
    plan = Plan("kfp", "http://x", {"name": "constant"}, arrivals, 7, False)
    scenarios = [Scenario("1", "a", {}, {}), Scenario("2", "b", {}, {})]
    return Assignment("run", plan, scenarios, array("d", range(arrivals)), t0_at=100 * S)


def test_scenarios_are_taken_in_turn_and_later_rounds_are_numbered():
    names = [arrival.scenario.name for arrival in whole(6).arrivals()]
    assert names == ["a", "b", "a-2", "b-2", "a-3", "b-3"]


def test_workers_together_send_each_arrival_once_with_the_name_it_has_for_one():
    alone = {each.seq: each for each in whole(7).arrivals()}
    shared = [each for index in range(3) for each in whole(7).stripe(index, 3).arrivals()]
    assert {each.seq: each for each in shared} == alone
    assert len(shared) == 7
