"""KFP's Kubernetes-native API mode: pipelines and versions are objects, whose names Kubernetes must allow."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import kfp
import kfp_server_api
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.collectors.http import Http, Timeouts
from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.catalogue import Catalogue
from harness.simulator.kfp.errors import Code, RpcError
from harness.targets.credentials import Credentials
from harness.targets.kfp import EXAMPLE, KfpTarget, prepare
from tests.support.kfp_exchange import TEXTS
from tests.support.serving import QUICK, Serve, Served

PACKAGE = EXAMPLE.read_bytes()


def catalogue(**more: Any) -> Catalogue:
    return Catalogue(EventLoop(), lambda: str(uuid4()), 3, objects=True, **more)


def refused(call: Callable[..., object], *arguments: object) -> RpcError:
    with pytest.raises(RpcError) as found:
        call(*arguments)
    return found.value


@pytest.mark.parametrize(
    ("name", "why"),
    [("My pipeline", "lower case"), ("a_b", "lower case"), ("-a", "lower case"), ("x" * 254, "no more than 253 characters")],
)  # fmt: skip
def test_a_name_that_no_object_may_have_is_refused(name: str, why: str) -> None:
    error = refused(catalogue().create_pipeline, PACKAGE, name)
    assert (error.code, why in error.message, "display_name" in error.message) == (Code.INVALID_ARGUMENT, True, True)


def test_the_names_of_pipeline_and_version_together_are_limited() -> None:
    kept = catalogue()
    pipeline = kept.create_pipeline(PACKAGE, "a" * 200)
    error = refused(kept.create_version, pipeline.id, PACKAGE, "b" * 53)
    assert (error.code, "combined" in error.message) == (Code.INVALID_ARGUMENT, True)
    assert kept.create_version(pipeline.id, PACKAGE, "b" * 52).name == "b" * 52


def test_versions_of_two_pipelines_may_need_the_same_object() -> None:
    kept = catalogue()
    first, second = (kept.create_pipeline(PACKAGE, name) for name in ("a", "a-b"))
    kept.create_version(first.id, PACKAGE, "b-c")
    assert refused(kept.create_version, second.id, PACKAGE, "c").code is Code.ALREADY_EXISTS


def test_of_several_users_each_pipeline_needs_a_namespace() -> None:
    kept = catalogue(multi_user=True)
    assert refused(kept.create_pipeline, PACKAGE, "a").code is Code.ABORTED
    assert kept.create_pipeline(PACKAGE, "a", "", "team-a").namespace == "team-a"


@settings(max_examples=40)
@given(st.text(max_size=300))
def test_whatever_a_pipeline_is_called_its_upload_has_a_name_that_is_taken(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    document, *more = yaml.safe_load_all(PACKAGE)
    file = tmp_path_factory.mktemp("pipeline") / "p.yaml"
    file.write_text(yaml.safe_dump_all([{**document, "pipelineInfo": {"name": name}}, *more]))
    uploaded = prepare(TEXTS | {"pipeline": str(file)}, simulated=False).options["pipeline_name"]
    assert len(uploaded) <= 127
    assert catalogue().create_pipeline(PACKAGE, uploaded).name == uploaded


@pytest.fixture(scope="module")
def served(serve: Serve) -> Served:
    return serve(profile=QUICK.replace("latency: 1ms}", "latency: 1ms, pipelines: kubernetes}"))


def test_a_served_platform_refuses_such_names_and_takes_ours(
    served: Served, client: kfp.Client, tmp_path: Path
) -> None:
    document = next(yaml.safe_load_all(PACKAGE))
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({**document, "pipelineInfo": {"name": "My Pipeline"}}))
    with pytest.raises(kfp_server_api.ApiException) as found:
        client.upload_pipeline(str(tmp_path / "p.yaml"), "My Pipeline")
    assert found.value.status == 400
    assert "Invalid pipeline version name" in json.loads(found.value.body)["error_message"]
    prepared = prepare(TEXTS | {"pipeline": str(tmp_path / "p.yaml")}, simulated=False)
    target = KfpTarget(prepared.options, package=prepared.package)
    exchange = Http("kfp", served.url, Credentials(), Timeouts(10.0, 60.0))
    first, again = target.set_up(exchange).options, target.set_up(exchange).options
    assert first == again
    assert client.get_pipeline(first["pipeline_id"]).display_name.startswith("my-pipeline-")
