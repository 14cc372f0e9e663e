"""Tables and ages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.kube_api import ApiError, Resource, Since
from harness.simulator.kube_api.columns import POD_COLUMNS
from harness.simulator.kube_api.shapes import MetadataOnly, Plain, Table, human_duration, negotiate
from harness.simulator.kube_api.store import ObjectVersion
from tests.support.kube_cluster import as_is, types

S, M, H, D, Y = 1, 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [  # either side of each step
        (-5, "<invalid>"), (-1, "0s"), (0, "0s"), (119.9, "119s"), (2 * M, "2m"), (2 * M + 1, "2m1s"),
        (10 * M - 1, "9m59s"), (10 * M + 59, "10m"), (3 * H - 1, "179m"), (3 * H, "3h"), (8 * H - 1, "7h59m"),
        (8 * H, "8h"), (48 * H - 1, "47h"), (2 * D, "2d"), (2 * D + H, "2d1h"), (8 * D - 1, "7d23h"), (8 * D, "8d"),
        (2 * Y - 1, "729d"), (2 * Y, "2y"), (2 * Y + D, "2y1d"), (8 * Y - 1, "7y364d"), (8 * Y, "8y"), (50 * Y, "50y"),
    ],
)  # fmt: skip
def test_an_age_is_shown_in_two_digits(seconds: float, shown: str) -> None:
    assert human_duration(seconds) == shown


@given(st.integers(0, 20 * Y))
def test_a_shown_age_is_never_above_the_true_one_and_near_it(seconds: int) -> None:
    units = {"s": S, "m": M, "h": H, "d": D, "y": Y}
    number, total = "", 0
    for each in human_duration(seconds):
        if each.isdigit():
            number += each
        else:
            total += int(number) * units[each]
            number = ""
    assert total <= seconds <= total * 1.13 + 1


def _restarts(statuses: list[dict[str, Any]]) -> object:
    column = next(each for each in POD_COLUMNS if each.name == "Restarts")
    return column.value({"metadata": {}, "status": {"containerStatuses": statuses}})


def test_restarts_show_the_age_of_the_last_one() -> None:
    assert _restarts([{"restartCount": 0}]) == "0"
    assert _restarts([{"restartCount": 1}, {"restartCount": 2}]) == "3"
    ended = [
        {"restartCount": 1, "lastState": {"terminated": {"finishedAt": f"2026-01-01T00:0{minute}:00Z"}}}
        for minute in (1, 3, 2)
    ]
    assert _restarts(ended) == Since("2026-01-01T00:03:00Z", before="3 (", after=" ago)")


def test_a_cell_shows_an_age() -> None:
    resource = next(each for each in types() if each.plural == "namespaces")
    snapshot = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Active"}}
    at = 1_767_225_600  # that instant
    table = json.loads(Table(resource, lambda: (at + 90) * 10**9).alone(ObjectVersion("", "a", snapshot, 7)))
    assert table["rows"][0]["cells"] == ["a", "90s"]
    assert table["metadata"] == {"resourceVersion": "7"}
    del snapshot["metadata"]["creationTimestamp"]  # type: ignore[attr-defined]
    table = json.loads(Table(resource, lambda: at * 10**9).alone(ObjectVersion("", "a", snapshot, 7)))
    assert table["rows"][0]["cells"] == ["a", "<unknown>"]


def test_a_type_without_columns_shows_name_and_age() -> None:
    resource = Resource("g", "v1", "things", "Thing", True, as_is, lambda _: {}, lambda _: {})
    snapshot = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    table = json.loads(Table(resource, lambda: 1_767_225_660 * 10**9).alone(ObjectVersion("n", "a", snapshot, 1)))
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["a", "60s"]


@pytest.mark.parametrize(
    ("accept", "shape"),
    [
        ("", Plain),
        ("*/*", Plain),
        ("application/vnd.kubernetes.protobuf,application/json", Plain),
        ("application/json;stream=watch", Plain),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Table),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Plain),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", MetadataOnly),
    ],
)
def test_the_first_representation_that_is_made_here_is_taken(accept: str, shape: type) -> None:
    assert isinstance(negotiate(accept, types()[0], {}, lambda: 0), shape)


def test_other_representations_are_not_acceptable() -> None:
    with pytest.raises(ApiError) as refusal:
        negotiate("application/vnd.kubernetes.protobuf", types()[0], {}, lambda: 0)
    assert refusal.value.code == 406
