"""``--result``: what the steps of a profile return."""

from collections import Counter

import pytest

from harness.model.errors import ConfigError
from harness.simulator.profile import Step
from harness.simulator.profile.results import ANY_OTHER, with_results
from tests.support.platforms import profile


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("steps.flip=heads:0.7,tails", {"heads": 70, "tails": 30}), ("steps.flip=heads", {"heads": 100}),
        ("steps.flip=heads:0.5", {"heads": 50, ANY_OTHER: 50}), ("tasks.flip=a,b", {"a": 50, "b": 50}),
        ("steps.flip=a:0", {ANY_OTHER: 100}),
    ],
)  # fmt: skip
def test_values_are_returned_as_often_as_their_shares_say(text, parts):
    first, *rest = with_results(profile(steps=(Step(match="f*", failing=0.5), Step())), [text]).steps
    assert (first.match, first.failing, len(rest)) == ("flip", 0.5, 2)
    assert Counter(first.results["result"]) == Counter(first.results["Output"]) == parts


def test_an_output_can_be_named():
    assert with_results(profile(), ["steps.flip.o=x"]).steps[0].results.keys() == {"o"}


@pytest.mark.parametrize(
    "text", ["flip=heads", "steps.=x", "steps.a=", "steps.a=x:y", "steps.a=x:2", "steps.a=x:-1", ""]
)
def test_what_says_nothing_is_refused(text):
    with pytest.raises(ConfigError, match="--result"):
        with_results(profile(), [text])
