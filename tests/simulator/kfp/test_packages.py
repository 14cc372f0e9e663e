import json

import pytest

from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.catalogue import Catalogue
from harness.simulator.kfp.errors import RpcError
from harness.simulator.kfp.packages import parse_package


@pytest.mark.parametrize("package", [b"[" * 60_000, b"a: &a [*a]", b"\xff", b"- 1", b"a: " + b"9" * 5000])
def test_what_is_no_pipeline_is_an_answer_of_the_api(package):
    with pytest.raises(RpcError) as refused:
        parse_package(package)
    assert "unknown template format" in str(refused.value)


def test_a_pipeline_that_no_kubernetes_object_can_hold_is_refused():
    container = {"image": "i", "args": ["x" * 2**21]}
    spec = {
        "pipelineInfo": {"name": "p"},
        "root": {"dag": {"tasks": {"t": {"componentRef": {"name": "c"}}}}},
        "components": {"c": {"executorLabel": "e"}},
        "deploymentSpec": {"executors": {"e": {"container": container}}},
    }
    catalogue = Catalogue(EventLoop(), lambda: "id", loop_iterations=3)
    with pytest.raises(RpcError, match=r"it has 2\.0 MiB, and a Kubernetes object has at most 1\.5"):
        catalogue.create_pipeline(json.dumps(spec).encode())
    container["args"] = []
    assert catalogue.create_pipeline(json.dumps(spec).encode()).name == "p"
