"""The requests of the set-up, before the first arrival."""

import pytest

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.targets.hetida.api import release
from tests.support.hetida_platform import EXAMPLE, Platform, answer, example, recorded, run_of, target


def test_an_unknown_transformation_is_uploaded_from_its_file_once():
    platform = Platform()
    for _ in range(2):
        target(transformation=str(EXAMPLE), platform=platform)
    puts = [request for request in platform.asked if request.method == "PUT"]
    assert [request.path for request in puts] == [f"/api/transformations/{example()['id']}?update_component_code=False"]


def test_an_id_is_looked_up_and_executed():
    platform = Platform(**{example()["id"]: example()})
    backend, inputs = target(transformation=example()["id"], platform=platform)
    assert "window" in inputs
    backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/api/transformations/execute"
    assert platform.sent.keys() == recorded("backend_execute_request").keys()
    assert platform.sent["id"] == example()["id"]


def test_the_version_of_a_component_is_what_it_names_if_it_does():
    platform = Platform()
    assert release(platform, "/engine/info", "hetida runtime") == {"hetida runtime": "0.9.8"}
    assert release(platform, "/api/info", "hetida backend") == {}, "404"
    for body in (b"<html>", [], {"version": None}, {"version": ""}):
        assert release(lambda _, body=body: answer(body), "/engine/info", "hetida runtime") == {}


def test_an_unknown_id_is_a_configuration_error():
    with pytest.raises(ConfigError, match="no transformation"):
        target(transformation="6b1f0c52-0000-4f55-9a53-6f1f3a1b7d01")


def test_a_revision_group_is_executed_at_its_latest_released_revision():
    group, newer = example()["revision_group_id"], example(id="2", name="newer", released_timestamp="2026-02-01")
    draft = example(id="3", name="draft", state="DRAFT", released_timestamp=None)
    platform = Platform(**{"1": example(), "2": newer, "3": draft})
    backend, _ = target(**{"revision-group": group}, platform=platform)
    ended = backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/api/transformations/execute-latest"
    assert platform.sent["revision_group_id"] == group
    assert ended.task == "newer"


def test_the_base_path_of_a_host_is_the_backends():
    platform = Platform()
    backend, _ = target("http://hd.example/hdapi", platform, transformation=str(EXAMPLE))
    backend.submit(run_of(), platform)
    assert platform.asked[-1].path == "/transformations/execute"


def test_a_refused_request_asks_for_a_token_and_an_html_page_is_not_a_backend():
    with pytest.raises(TargetUnreachableError, match="PIPESWARM_TOKEN"):
        target(transformation=str(EXAMPLE), platform=lambda _: answer({"detail": "no"}, 401))
    with pytest.raises(TargetUnreachableError, match="HTML page"):
        target(transformation=str(EXAMPLE), platform=lambda _: answer(b"<html>"))


def test_a_remote_backend_needs_a_callback_url():
    with pytest.raises(ConfigError, match="--callback-url"):
        target(mode="async", transformation=str(EXAMPLE))
    with pytest.raises(ConfigError, match="no port"):
        target(mode="async", transformation=str(EXAMPLE), **{"callback-url": "http://me.example"})


def test_a_transformation_that_the_backend_rejects_is_a_configuration_error():
    class Strict(Platform):
        def __call__(self, request):
            if request.method == "PUT":
                detail = [{"loc": ["body", "description"], "msg": "string does not match regex", "type": "value_error"}]
                return answer({"detail": detail}, 422)
            return super().__call__(request)

    with pytest.raises(ConfigError, match=r"rejects.* description: string does not match"):
        target(platform=Strict(), transformation=str(EXAMPLE))
