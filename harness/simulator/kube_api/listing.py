"""List requests: one page of one consistent state."""

from dataclasses import dataclass
from typing import Any

from harness.simulator.kube_api.errors import expired, version_too_large
from harness.simulator.kube_api.options import LATEST, ContinueToken, ListOptions
from harness.simulator.kube_api.store import ObjectStore, ObjectVersion, VersionTooOldError

_PAGES_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_STATE_EXPIRED = "The resourceVersion for the provided list is too old."


@dataclass(frozen=True, slots=True)
class Page:
    """The objects of one response, and the list's `metadata`."""

    objects: list[ObjectVersion]
    metadata: dict[str, Any]


def read_page(store: ObjectStore, options: ListOptions) -> Page:
    """Answer a list request.

    Without a limit the page holds everything. The pages of one list, linked by tokens, show the state at the first
    page's version regardless of later writes. A list at any version (``resourceVersion=0``) has no pages, since a real
    server answers it from its cache.

    Raises:
        ApiError: 410 if the requested state is no longer known, 504 if it is in the future.
    """
    selection = options.selection
    resource = selection.resource
    if resource.listing is not None:
        return Page(
            [
                object_version
                for object_version in store.objects(resource, selection.namespace)
                if selection.matches(object_version)
            ],
            {},
        )
    version, start = _where(store, options)
    prefix = f"{selection.namespace}/" if selection.namespace else ""
    try:
        object_versions = store.objects_at(resource, version, selection.namespace, prefix + start if start else "")
    except VersionTooOldError as error:
        if options.token is None:
            raise expired(_STATE_EXPIRED) from error
        raise expired(_PAGES_EXPIRED, ContinueToken(LATEST, options.token.start).encode()) from error
    limit = 0 if options.version == 0 else options.limit
    page, following = _first(object_versions, limit, options)
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if following:
        metadata["continue"] = ContinueToken(version, page[-1].key.removeprefix(prefix) + "\0").encode()
        if not selection.filters:
            metadata["remainingItemCount"] = following
    return Page(page, metadata)


def _where(store: ObjectStore, options: ListOptions) -> tuple[int, str]:
    """The version to list, and the first key."""
    if options.token is not None:
        version = options.token.version
        return (store.version if version == LATEST else version), options.token.start
    if not options.version:
        return store.version, ""
    if options.version > store.version:
        raise version_too_large(options.version, store.version)
    exact = options.match == "Exact" or (not options.match and options.limit > 0)
    return (options.version if exact else store.version), ""


def _first(found: list[ObjectVersion], limit: int, options: ListOptions) -> tuple[list[ObjectVersion], int]:
    """The first `limit` matching objects, and the number of objects after them, matching or not."""
    selection = options.selection
    if not selection.filters:
        return (found, 0) if not limit else (found[:limit], max(0, len(found) - limit))
    page: list[ObjectVersion] = []
    for index, each in enumerate(found):
        if selection.matches(each):
            page.append(each)
            if len(page) == limit:
                return page, len(found) - index - 1
    return page, 0
