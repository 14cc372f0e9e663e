"""What OpenCost's allocation API answers, in the shape that its documentation shows."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.collectors.metrics.opencost import Allocations, pod_costs
from harness.collectors.source_health import UnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from tests.support.opencost import allocations

SINCE_S = 1_764_280_800  # 2025-11-27T22:00:00Z
ASK = Allocations("opencost", "", SINCE_S, SINCE_S + 3600)


def answered(body: object, status: int = 200) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return pod_costs(lambda _: HttpAnswer(status, content), *ASK.request)


def good(costs: Mapping[str, float | None], shift_s: int = 0) -> dict[str, Any]:
    return allocations(costs, SINCE_S + shift_s, SINCE_S + 3600 + shift_s)


def test_it_asks_for_pods_and_idle_nodes_of_the_time_and_nothing_else() -> None:
    asked: list[HttpRequest] = []

    def exchange(request: HttpRequest) -> HttpAnswer:
        asked.append(request)
        return HttpAnswer(200, json.dumps(good({})).encode())

    pod_costs(exchange, *ASK.request)
    path = "window=2025-11-27T22%3A00%3A00Z%2C2025-11-27T23%3A00%3A00Z&aggregate=namespace%2Cpod&includeIdle=true"
    assert [each.path for each in asked] == [f"/allocation/compute?{path}"]


def test_each_pod_has_its_cost_and_idle_nodes_theirs() -> None:
    at = SINCE_S * 10**9
    assert answered(good({"team-a/train-x": 0.5, "one/__idle__": 2.0, "__idle__": 1.0, "team-a/none": None})) == [
        ({"namespace": "team-a", "pod": "train-x"}, [(at, 0.5)]),
        ({"idle": "true"}, [(at, 2.0)]),
        ({"idle": "true"}, [(at, 1.0)]),
        ({"namespace": "team-a", "pod": "none"}, [(at, 0.0)]),
    ]


def test_where_nothing_was_allocated_there_is_nothing() -> None:
    assert answered({"code": 200, "data": [None, {}]}) == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"<!doctype html><title>Sign in</title>", 200, "answered 200 with an HTML page, “Sign in”"),
        (b"", 401, "answered 401 with no JSON"),
        ({"message": "not allowed"}, 403, "answered 403 not allowed"),
        (b"404 page not found\n", 404, "answered 404 with no JSON"),
        ({"code": 500, "message": "no data"}, 200, "answered 200 no data"),
        ({"status": "success", "data": {"result": []}}, 200, "answered 200"),  # a Prometheus
        ({"code": 200}, 200, "did not answer as an OpenCost does"),
        ({"code": 200, "data": [{"a/b": {"totalCost": 1.0}}]}, 200, "did not answer as an OpenCost does"),
        ({"code": 200, "data": [[]]}, 200, "did not answer as an OpenCost does"),
        ({"code": 200, "data": [{"a/b": 1}]}, 200, "did not answer as an OpenCost does"),
        ([], 200, "answered 200"),
        (good({"a/b": 1.0}, shift_s=86_400), 200, "answered about another time"),
        (good({"a/b": 1.0}, shift_s=-86_400), 200, "answered about another time"),
    ],
)
def test_anything_else_is_one_sentence(body: object, status: int, words: str) -> None:
    with pytest.raises(UnreachableError) as error:
        answered(body, status)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["1e999", "-1e999", '"free"', "[]", "true"])
def test_a_cost_is_a_number(text: str) -> None:
    body = json.dumps(good({"a/b": 12345.5})).replace("12345.5", text).encode()
    with pytest.raises(UnreachableError, match=r"OpenCost|JSON"):
        answered(body)
