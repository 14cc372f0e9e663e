"""List requests: one page of one consistent state."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from harness.simulator.kube_api.errors import ApiError, bad_request, expired, version_too_large
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.selectors import Selection, parse_fields, parse_labels
from harness.simulator.kube_api.store import ObjectStore, ObjectVersion, VersionTooOldError

# --- query parameters of lists and watches, with the checks of a real server -----------------------------------------


_FORMAT = "meta.k8s.io/v1"  # the format name inside a continue token
LATEST = -1  # the version in a token without consistency


@dataclass(frozen=True, slots=True)
class ContinueToken:
    """The next page of a list: the objects of `version` from the key `start`, in the requested namespace."""

    version: int
    start: str

    def encode(self) -> str:
        """The opaque token for clients."""
        document = {"v": _FORMAT, "rv": self.version, "start": self.start}
        return urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "ContinueToken":
        """Parse a client's token.

        Raises:
            ApiError: 400: not one of our tokens.
        """
        try:
            document = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            token = cls(int(document["rv"]), str(document["start"]))
        except (ValueError, KeyError, TypeError) as error:
            raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
        return token


@dataclass(frozen=True, slots=True)
class ListOptions:
    """A checked list or watch request. `version` is none if the client gave none."""

    selection: Selection
    limit: int = 0  # 0 is no limit
    token: ContinueToken | None = None
    version: int | None = None
    match: str = ""  # Exact, NotOlderThan or ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool = False
    timeout_s: float | None = None


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter: present and neither ``0`` nor ``false``."""
    return name in query and query[name].lower() not in ("0", "false")


def number(query: Mapping[str, str], name: str) -> int:
    """An integer parameter, 0 by default.

    Raises:
        ApiError: 400: not an integer.
    """
    text = query.get(name, "")
    if text and not re.fullmatch(r"[+-]?\d+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text or 0)


def _version(text: str, *, watch: bool) -> int | None:
    if not text:
        return None
    if not text.isdecimal():
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        why = f"resourceVersion: {why}"
        raise ApiError(500, "", why) if watch else bad_request(f"invalid resource version: {why}")
    return int(text)


def parse_options(resource: Resource, namespace: str, query: Mapping[str, str]) -> ListOptions:
    """Parse and check the query of a list or watch.

    Raises:
        ApiError: 400 or 500, with the message of a real server.
    """
    limit, timeout = number(query, "limit"), number(query, "timeoutSeconds")
    selection = Selection(
        resource,
        namespace,
        parse_labels(query.get("labelSelector", "")),
        parse_fields(query.get("fieldSelector", ""), resource.selectable),
    )
    watch, initial_events = flag(query, "watch"), flag(query, "sendInitialEvents")
    version, token, match = (query.get(each, "") for each in ("resourceVersion", "continue", "resourceVersionMatch"))
    if token and not watch and version not in ("", "0"):
        ContinueToken.decode(token)  # a bad token takes precedence
        raise bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        selection,
        limit=max(0, limit),
        token=ContinueToken.decode(token) if token and not watch else None,
        version=_version(version, watch=watch),
        match=match,
        watch=watch,
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=watch and initial_events,
        timeout_s=float(timeout) if timeout > 0 else None,
    )


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
            [stored for stored in store.objects(resource, selection.namespace) if selection.matches(stored)],
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
