"""Patches: the three formats, by the examples of their specifications and by property."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.simulator.kube_api.errors import ApiError
from harness.simulator.kube_api.patches import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, apply_patch, difference, merge


@pytest.mark.parametrize(
    ("document", "patch", "merged"),
    [  # RFC 7386, appendix A, those that begin and end as objects
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_follows_its_rfc(document: Any, patch: Any, merged: Any) -> None:
    assert apply_patch(MERGE_PATCH, document, patch) == merged


_documents = st.recursive(
    st.integers(0, 3) | st.booleans() | st.text("ab", max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(st.sampled_from("abc"), _documents, max_size=3)


@given(_objects, _objects)
def test_the_difference_leads_from_one_document_to_the_other(before: Any, after: Any) -> None:
    assert merge(dict(before), difference(before, after)) == after
    assert difference(after, after) == {}


@pytest.mark.parametrize(
    ("patch", "patched"),
    [  # after RFC 6902, appendix A
        ([{"op": "add", "path": "/baz", "value": "qux"}], {"foo": ["bar", "baz"], "baz": "qux"}),
        ([{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
        ([{"op": "add", "path": "/foo/-", "value": 1}], {"foo": ["bar", "baz", 1]}),
        ([{"op": "remove", "path": "/foo/1"}], {"foo": ["bar"]}),
        ([{"op": "remove", "path": "/foo"}], {}),
        ([{"op": "replace", "path": "/foo/0", "value": 2}], {"foo": [2, "baz"]}),
        ([{"op": "test", "path": "/foo/1", "value": "baz"}], {"foo": ["bar", "baz"]}),
        ([], {"foo": ["bar", "baz"]}),
    ],
)
def test_a_json_patch_follows_its_rfc(patch: Any, patched: Any) -> None:
    document = {"foo": ["bar", "baz"]}
    assert apply_patch(JSON_PATCH, document, patch) == patched
    assert document == {"foo": ["bar", "baz"]}


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/foo/0", "value": "no"},
        {"op": "replace", "path": "/nope", "value": 1},
        {"op": "remove", "path": "/nope/x"},
        {"op": "add", "path": "/foo/9", "value": 1},
        {"op": "remove", "path": "/foo/-1"},
        {"op": "add", "path": "no-pointer", "value": 1},
        {"op": "what", "path": "/foo"},
        {"path": "/foo"},
    ],
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(step: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        apply_patch(JSON_PATCH, {"foo": ["bar"]}, [step])
    assert refusal.value.code == 422


@pytest.mark.parametrize(
    ("document", "patch", "patched"),
    [
        # items of known lists are told apart by their key
        (
            {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "False"}]},
        ),
        (
            {"containers": [{"name": "a", "image": "1", "env": [{"name": "x", "value": "1"}]}]},
            {"containers": [{"name": "a", "env": [{"name": "y"}]}, {"name": "b"}]},
            {
                "containers": [
                    {"name": "a", "image": "1", "env": [{"name": "x", "value": "1"}, {"name": "y"}]},
                    {"name": "b"},
                ]
            },
        ),
        ({"containers": [{"name": "a"}]}, {"containers": [{"name": "a", "$patch": "delete"}]}, {"containers": []}),
        (
            {"containers": [{"name": "a"}]},
            {"containers": [{"$patch": "replace"}, {"name": "b"}]},
            {"containers": [{"name": "b"}]},
        ),
        # other lists are replaced
        ({"taints": [{"key": "a"}]}, {"taints": [{"key": "b"}]}, {"taints": [{"key": "b"}]}),
        ({"taints": [{"key": "a"}]}, {"taints": None}, {}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": {"a": None, "b": "2"}}, {"labels": {"b": "2"}}),
    ],
)
def test_a_strategic_patch_merges_lists_by_key(document: Any, patch: Any, patched: Any) -> None:
    assert apply_patch(STRATEGIC_PATCH, document, patch) == patched


def test_a_list_item_without_its_key_is_refused() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        apply_patch(STRATEGIC_PATCH, {}, {"containers": [{"image": "x"}]})


def test_an_unknown_kind_of_patch_is_refused() -> None:
    with pytest.raises(ApiError) as refusal:
        apply_patch("application/json", {}, {})
    assert refusal.value.code == 415
