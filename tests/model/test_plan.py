from dataclasses import asdict

import pytest

from harness.model.plan import Limits, ObserverPlan, Plan


def test_a_plan_comes_back_from_plain_values_with_defaults_for_what_they_lack():
    plan = Plan(
        "kfp", "h", {"name": "burst"}, 5, 7, simulated=False, limits=Limits(drain_s=1.0),
        observer=ObserverPlan(metrics=(("a", "b"),)), slos=("x",),
    )  # fmt: skip
    assert Plan.from_mapping(asdict(plan)) == plan
    least = {"target": "kfp", "host": "h", "schedule": {}, "intended": 5, "seed": 7, "simulated": False}
    assert Plan.from_mapping(least | {"of a newer version": 1}) == Plan("kfp", "h", {}, 5, 7, simulated=False)
    with pytest.raises(TypeError, match=r"^'limits\.drain_s' is 'long', not a number$"):
        Plan.from_mapping(least | {"limits": {"drain_s": "long"}})


@pytest.mark.parametrize(
    ("given", "tenants"), [("a;b", ("a", "b")), (";a;", ("a",)), ("", ()), (None, ()), ("one", ("one",))]
)
def test_tenants_are_listed_in_the_targets_options(given, tenants):
    assert Plan("kfp", "h", {}, 5, 7, simulated=False, target_options={"tenants": given}).tenants == tenants
