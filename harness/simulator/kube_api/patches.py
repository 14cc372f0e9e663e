"""The three kinds of patch for Kubernetes objects, and their conversion to merge patches.

A client sends a JSON patch (RFC 6902), a JSON merge patch (RFC 7386) or a strategic merge patch. Each is applied to
the current object; the difference between before and after is always a merge patch.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from harness.simulator.kube_api.errors import ApiError, bad_request

Document = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

# The key that identifies list items in a strategic merge patch; other lists are replaced as a whole.
# Source: the `x-kubernetes-patch-merge-key` fields of Kubernetes' OpenAPI document.
_MERGE_KEYS = {
    "addresses": "type", "conditions": "type", "containers": "name", "env": "name", "ephemeralContainers": "name",
    "hostAliases": "ip", "imagePullSecrets": "name", "initContainers": "name", "ownerReferences": "uid",
    "topologySpreadConstraints": "topologyKey", "volumeDevices": "devicePath", "volumeMounts": "mountPath",
    "volumes": "name",
}  # fmt: skip
_DIRECTIVE = "$patch"


def apply_patch(content_type: str, document: Document, patch: Any) -> Document:
    """The document after a client's patch; neither argument is changed.

    Raises:
        ApiError: 400 for a malformed patch, 415 for an unknown kind, 422 if it cannot be applied.
    """
    apply = _KINDS.get(content_type)
    if apply is None:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    patched = apply(copy.deepcopy(document), patch)
    if not isinstance(patched, dict):
        raise _unprocessable()
    return patched


def merge(document: Any, patch: Any) -> Any:
    """`document` after an RFC 7386 merge patch, changed in place if both are objects."""
    if not isinstance(patch, Mapping):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Document:
    """The merge patch that turns `before` into `after`; empty when they are equal."""
    patch: Document = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif before[key] != value:
            both = isinstance(before[key], dict) and isinstance(value, dict)
            patch[key] = difference(before[key], value) if both else value
    return patch


def _merge_patch(document: Document, patch: Any) -> Any:
    if not isinstance(patch, dict):
        raise bad_request("a merge patch is a JSON object")
    return merge(document, patch)


def _strategic_patch(document: Document, patch: Any) -> Any:
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is a JSON object")
    return _merge_strategic(document, patch)


def _merge_strategic(document: Any, patch: Mapping[str, Any]) -> Any:
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    merged: Document = {} if directive == "replace" or not isinstance(document, dict) else document
    for key, value in patch.items():
        if key.startswith("$"):
            continue  # $setElementOrder only reorders what is merged by key; no other directive fits what can change
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merge_strategic(merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = _merge_list(key, merged.get(key) or [], value)
        else:
            merged[key] = value
    return merged


def _merge_list(field: str, items: list[Any], patch: list[Any]) -> list[Any]:
    key = _MERGE_KEYS.get(field)
    replaces = any(isinstance(each, dict) and each.get(_DIRECTIVE) == "replace" for each in patch)
    if key is None or replaces:
        return [each for each in patch if not (isinstance(each, dict) and _DIRECTIVE in each)]
    merged = list(items)
    for each in patch:
        if not isinstance(each, dict) or key not in each:
            raise bad_request(f"map: {each} does not contain declared merge key: {key}")
        at = next((index for index, item in enumerate(merged) if item.get(key) == each[key]), None)
        if each.get(_DIRECTIVE) == "delete":
            merged = [item for item in merged if item.get(key) != each[key]]
        elif at is None:
            merged.append(_merge_strategic({}, each))
        else:
            merged[at] = _merge_strategic(merged[at], each)
    return merged


def _json_patch(document: Any, patch: Any) -> Any:
    if not isinstance(patch, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    for step in patch:
        try:
            document = _step(document, step)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise _unprocessable() from error
    return document


def _step(document: Any, step: Mapping[str, Any]) -> Any:
    operation, path = step["op"], _pointer(step["path"])
    if operation == "test":
        if _read(document, path) != step["value"]:
            raise ValueError("test failed")
        return document
    if operation == "remove":
        return _remove(document, path)
    if operation == "replace":
        _read(document, path)
        return _add(_remove(document, path), path, step["value"]) if path else step["value"]
    if operation == "add":
        return _add(document, path, step["value"])
    raise ValueError(f"unknown operation {operation}")


def _pointer(text: str) -> list[str]:
    """The steps of a JSON pointer (RFC 6901)."""
    if text and not text.startswith("/"):
        raise ValueError(f"{text} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(container: list[Any], step: str) -> int:
    index = int(step)
    if not 0 <= index < len(container):
        raise IndexError(step)
    return index


def _read(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[_index(document, step)] if isinstance(document, list) else document[step]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    container, last = _read(document, path[:-1]), path[-1]
    if isinstance(container, list):
        container.insert(len(container) if last == "-" else _index([*container, None], last), value)
    else:
        container[last] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    container, last = _read(document, path[:-1]), path[-1]
    container.pop(_index(container, last) if isinstance(container, list) else last)
    return document


def _unprocessable() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


_KINDS: Mapping[str, Callable[[Document, Any], Any]] = {
    JSON_PATCH: _json_patch,
    MERGE_PATCH: _merge_patch,
    STRATEGIC_PATCH: _strategic_patch,
}
