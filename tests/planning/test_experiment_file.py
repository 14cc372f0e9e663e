import pytest

from harness.model.errors import ConfigError
from harness.planning.experiment_file import read_experiment


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loads: 1\nnodes: x", "plan.yaml:2: nodes: 'x' is not"),
        ("loads: 1\nnodes: 1\nquestion: why", "question: is 'why', not one of: grid"),
        ("loads: 1\nnodes: 1\nlod: 2", "plan.yaml:3: lod: unknown key"),
        ("loads: 1\nnodes: 1\nquestion: fewest-nodes", "needs 'slos'"),
        ("loads: 1\nnodes: 1\nslos: [fast]", "the SLO 'fast'"),
        ("loads: 1\nnodes: 1\nrepetitions: 0", "repetitions: 0 is not a number from 1 to 10,000,000"),
        ("loads: 1\nnodes: 1\nhooks: {set_nodes: 'x {node}'}", "hooks.set_nodes"),
        ("loads: 1\nnodes: 1\nhooks: {set_nodes: x, pool: y}", "give one of them"),
        ("loads: 1\nnodes: 1\nvariants: [a]", "variants: is ['a'], not a mapping"),
        ("loads: 1\nnodes: 1\noptions: [a]", "options: is ['a'], not a mapping"),
        ("loads: 1\nnodes: 1\nhooks: before", "hooks: is 'before', not a mapping"),
        ("loads: 1\nnodes: 1\nslos: 5", "slos: '5' is not a list"),
        ("[]", "not a mapping"),
        ("loads: 1\nnodes: 1\nhooks: {cool_down: soon}", "hooks.cool_down: 'soon' is not a duration"),
        ("a: [", "not valid YAML"),
    ],
)
def test_an_invalid_plan_is_rejected_with_its_key(tmp_path, text, message):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_experiment(path)
    assert message in str(caught.value)


def test_a_single_objective_needs_no_list(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("loads: 1\nnodes: 1\nslos: 'failed_ratio < 0.1'")
    assert read_experiment(path).slos == ("failed_ratio < 0.1",)


def test_axes_are_written_in_three_ways(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("loads: [20, 10, 10]\nnodes: 2..10 by 4")
    found = read_experiment(path).experiment
    assert (found.loads, found.nodes) == ((10, 20), (2, 6, 10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("loads: 5\nnodes: 2\nname: x/../../../y", "name: 'x/../../../y' can't be a folder's name"),
        ("loads: 5\nnodes: 2\nname: ..", "name: '..' can't be a folder's name"),
        ("loads: 5\nnodes: 2\nname: [a]", "name: is ['a'], not a text"),
        ("loads: 5\nnodes: 2\nseed: " + "9" * 5000, "the number is too long"),
        ("loads: 5\nnodes: 2\nseed: true", "seed: is True, not a whole number"),
        ("loads: 1000000000000\nnodes: 2", "is not a whole number from 1 to 10,000,000"),
        ("loads: 5\nnodes: 2\nhooks: {cool_down: [1]}", "hooks.cool_down: is [1], not a number"),
        ("loads: 5\nnodes: 2\nhooks: {before: 'echo {load:>9999999999}'}", "{load:>9999999999} can't be filled in"),
        ("loads: 5\nnodes: 2\nhooks: {before: 'echo {load.__class__}'}", "{load.__class__} can't be filled in"),
        ("loads: 5\nnodes: 2\nhooks: {before: 'echo {load!r}'}", "{load!r} can't be filled in"),
        ("loads: 5\nnodes: 2\nhooks: {before: 'echo {'}", "hooks.before: "),
    ],
    ids=range(11),
)
def test_a_plan_from_somebody_else_asks_for_nothing_excessive(tmp_path, text, message):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_experiment(tmp_path / "plan.yaml")
    assert message in refused.value.message
