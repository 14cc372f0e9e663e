"""Names as a real Argo 4.0.8 gave them."""

import base64
import gzip
import json

import pytest

from harness.model.argo.nodes import is_offloaded, node_id, nodes_of_status, parent_of_node, task_of_node


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
        ("wf.executor", "executor"),
        ("executor", "executor"),
        ("train.executor", "train"),
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


NODES = {"wf-1": {"name": "wf(0)", "phase": "Running"}}


def packed(text):
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


@pytest.mark.parametrize(
    ("status", "nodes"),
    [
        ({"nodes": NODES, "compressedNodes": "?"}, NODES),
        ({"nodes": {}, "compressedNodes": packed(json.dumps(NODES).encode())}, NODES),
        ({"nodes": None, "compressedNodes": ""}, {}),
        ({}, {}),
    ],
)
def test_the_nodes_of_a_status_are_plain_or_compressed(status, nodes):
    assert nodes_of_status(status) == nodes


@pytest.mark.parametrize(
    ("compressed", "why"),
    [
        ("!" + packed(b"{}"), "Only base64 data is allowed"),
        (packed(b"{}")[:12], "Compressed file ended"),
        (base64.b64encode(b"plain").decode(), "Not a gzipped file"),
        (packed(b"{"), "Expecting property name"),
        (packed(b"5"), "'int' object is not iterable"),
    ],
)
def test_compressed_nodes_that_can_t_be_read_are_told(compressed, why):
    with pytest.raises(ValueError, match=f"^the compressed nodes can't be read: {why}"):
        nodes_of_status({"compressedNodes": compressed})


@pytest.mark.parametrize(
    ("status", "offloaded"),
    [
        ({"offloadNodeStatusVersion": "fnv:1"}, True),
        ({"offloadNodeStatusVersion": "fnv:1", "nodes": NODES}, False),
        ({"offloadNodeStatusVersion": "fnv:1", "compressedNodes": "x"}, False),
        ({"offloadNodeStatusVersion": ""}, False),
        ({}, False),
    ],
)
def test_nodes_are_in_the_database_where_the_status_says_so_and_holds_none(status, offloaded):
    assert is_offloaded(status) is offloaded
