"""List, then watch: every object of a type and every change, across lost connections and expired history.

Source of the protocol: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.source_health import RETRY, SourceHealth, UnreachableError
from harness.model.phases import GAP

Manifest = dict[str, Any]
# Called with LISTED, ADDED, MODIFIED or DELETED and the object; another listing shows objects that were seen before.
OnChange = Callable[[str, Manifest], None]

LISTED, ADDED = "LISTED", "ADDED"
_GONE = 410
_PAGE = "500"
_WATCH_S = 290  # the server's own limit is 5 to 10 minutes
_LAST_WATCH_S = 1
_SHORT_S = 1.0
# What is kept of an object, to report it as DELETED when it has vanished.
_KEPT = ("name", "namespace", "uid", "labels", "creationTimestamp")


class GoneError(Exception):
    """The version to resume from has expired on the server."""


class Reflector:
    """Follows the objects at `path` that match `query`.

    Args:
        api: of the cluster.
        path: of the list, such as ``/api/v1/pods``.
        query: selectors.
        on_change: called in the reflector's thread.
        health: named after what is watched.
        journal: takes the gaps.
        tracks: remember what exists, so that objects that vanished unseen are reported as DELETED after a new listing.
        metadata_only: leave out specification and status.

    Attributes:
        looked: the objects were listed, or could not be.
        listed: they were listed.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        query: Mapping[str, str],
        on_change: OnChange,
        *,
        health: SourceHealth,
        journal: Journal,
        tracks: bool = True,
        metadata_only: bool = False,
    ) -> None:
        self._api = api
        self._path = path
        self._query = dict(query)
        self._on_change = on_change
        self._health = health
        self._journal = journal
        self._tracks = tracks
        self._metadata_only = metadata_only
        self._known: dict[str, Manifest] = {}
        self._version = ""
        self.looked = False
        self.listed = False

    @property
    def current(self) -> bool:
        """Every change so far has been reported."""
        return self.listed and not self._health.lost

    @property
    def lapsed(self) -> bool:
        """There may be changes that were not reported: the list was read, but can't be watched at present."""
        return self.listed and self._health.lost

    def follow(self, stop: threading.Event) -> None:
        """Report every change until `stop` is set, and those that happened until then."""
        while not stop.is_set():
            started_s = time.monotonic()
            try:
                self._step(stop)
            except GoneError:
                self._version = ""
                text = "the changes since the last one seen have expired on the server; everything was listed again"
                self._journal.note(GAP, self._health.name, text)
            except UnreachableError as error:
                self.looked = True
                stop.wait(self._health.failed(error))
            if time.monotonic() - started_s < _SHORT_S:
                stop.wait(_SHORT_S)
        self._finish()

    def _step(self, stop: threading.Event) -> None:
        resumes = bool(self._version)
        if not resumes:
            self._list()
        stream = self._open(_WATCH_S)
        self._health.answered(missed=not resumes)
        self.looked = True
        if stop.is_set():
            stream.interrupt()  # all streams may have been interrupted just before this one was opened
        try:
            self._read(stream)
        except UnreachableError as error:
            # Nothing is lost: the next watch resumes from the last version seen.
            self._journal.note(RETRY, self._health.name, f"{error}; resumed")

    def _finish(self) -> None:
        """Report what happened until now."""
        if self._version:
            try:
                self._read(self._open(_LAST_WATCH_S))
                self._health.answered()
            except (UnreachableError, GoneError) as error:
                self._health.failed(error)
        self._health.end()

    def _list(self) -> None:
        listed: set[str] = set()
        token = ""
        while True:
            query = {**self._query, "limit": _PAGE} | ({"continue": token} if token else {})
            try:
                page = self._api.get(self._path, query, metadata_only=self._metadata_only)
            except UnreachableError as error:
                if error.status == _GONE and token:
                    token = ""  # the listing took longer than the server keeps it: start again
                    continue
                raise
            for manifest in page.get("items") or ():
                listed.add(str(manifest["metadata"]["uid"]))
                self._report(LISTED, manifest)
            metadata = page.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                break
        for uid in set(self._known) - listed:
            self._report("DELETED", self._known[uid])
        self._version = str(metadata.get("resourceVersion") or "")
        self.listed = True

    def _open(self, limit_s: int) -> Any:
        query = {**self._query, "resourceVersion": self._version, "timeoutSeconds": str(limit_s)}
        try:
            query["allowWatchBookmarks"] = "true"
            return self._api.watch(self._path, query, metadata_only=self._metadata_only)
        except UnreachableError as error:
            if error.status == _GONE:
                raise GoneError from error
            raise

    def _read(self, stream: Any) -> None:
        for event in stream:
            kind, manifest = str(event["type"]), event["object"]
            if kind == "ERROR":
                if manifest.get("code") == _GONE:
                    raise GoneError
                raise UnreachableError(f"the watch of {self._path} failed: {manifest.get('message', manifest)}")
            self._version = str(manifest["metadata"]["resourceVersion"])
            if kind != "BOOKMARK":
                self._report(kind, manifest)

    def _report(self, kind: str, manifest: Manifest) -> None:
        if self._tracks:
            metadata = manifest["metadata"]
            if kind == "DELETED":
                self._known.pop(str(metadata["uid"]), None)
            elif metadata["uid"] not in self._known:
                kept = {name: metadata[name] for name in _KEPT if name in metadata}
                self._known[str(metadata["uid"])] = {"metadata": kept}
        self._on_change(kind, manifest)
