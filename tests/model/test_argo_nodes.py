"""Names as a real Argo 4.0.8 gave them."""

import pytest

from harness.model.argo_nodes import node_id, parent_of_node, task_of_node


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("wf(0).root-driver(0)", "root-driver"),
        ("wf(0).root(0).make-driver(0)", "make-driver"),
        ("wf(0).root(0).make(0).executor(0)", "make"),
        ("wf(0).root(0).make(0).executor(1)", "make"),
        ("wf(0).root(0).make(0).executor", "make"),
        ("wf.root.make.executor", "make"),
        ("wf.root.make.executor(2)", "make"),
        ("wf(0).root(0).for-loop-2(0).iteration-driver(0)", "iteration-driver"),
        ("wf(0).root(0).for-loop-2(0).iteration-iterations(0:0)(0).iteration-item(0).step(0).executor(0)", "step"),
        ("wf(0).root(0).exit-handler-1.onExit(0).step(0).executor(0)", "step"),
        ("wf(0).root(0).condition-branches-1(0).condition-2-driver(0)", "condition-2-driver"),
        ("wf(0).root(0).executor(0).executor(0)", "executor"),
        ("wf[0].each(2:r)", "each"),
        ('wf(0).each(2:{"rate":0.5,"f":"g(x)"})(0)', "each"),
        ("wf(0)[1].c(0)", "c"),
        ("wf(0)", "main"),
        ("wf", "main"),
    ],
)
def test_a_node_belongs_to_the_task_that_the_pipeline_names(name, task):
    assert task_of_node(name, "wf") == task


@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("wf(0).root(0).make(0)", "wf(0).root(0).make"),
        ("wf(0).root(0).make", "wf(0).root(0)"),
        ("wf(0).root(0).each(1:1)(0)", "wf(0).root(0).each(1:1)"),
        ("wf(0).root(0).each(1:1)", "wf(0).root(0).each"),
        ("wf(0)[1]", "wf(0)"),
        ("wf(0)", "wf"),
        ("wf", ""),
    ],
)
def test_a_node_is_an_attempt_an_item_or_a_part_of_its_parent(name, parent):
    assert parent_of_node(name) == parent


def test_ids_are_those_that_argo_gave():
    workflow = "train-three-tw9m9"
    assert node_id(f"{workflow}(0).root(0).make(0).executor(0)", workflow) == f"{workflow}-2386951458"
    assert node_id(f"{workflow}(0).root-driver(0)", workflow) == f"{workflow}-2051040068"
    assert node_id(workflow, workflow) == workflow
