"""List, then watch: every object of a type, and every change of one, over broken connections and forgotten history.

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
# Called with ADDED, MODIFIED or DELETED and the object. What is listed anew comes as ADDED once more.
OnChange = Callable[[str, Manifest], None]

_GONE = 410
_PAGE = "500"
_WATCH_S = 290  # the server's own limit is 5 to 10 minutes
_LAST_WATCH_S = 1
_SHORT_S = 1.0
# What is kept of an object to tell of it when it has vanished.
_KEPT = ("name", "namespace", "uid", "labels", "creationTimestamp")


class GoneError(Exception):
    """The server has forgotten the version that we want to go on from."""


class Reflector:
    """Follows the objects at `path` that fit `query`.

    Args:
        api: of the cluster.
        path: of the list, such as ``/api/v1/pods``.
        query: selectors.
        on_change: called in the reflector's thread.
        contact: named after what is watched.
        journal: gets the gaps.
        tracks: remember what exists, so that what vanished unseen is told as DELETED after a new listing.
        metadata_only: leave out specification and status.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        query: Mapping[str, str],
        on_change: OnChange,
        *,
        contact: SourceHealth,
        journal: Journal,
        tracks: bool = True,
        metadata_only: bool = False,
    ) -> None:
        self._api = api
        self._path = path
        self._query = dict(query)
        self._on_change = on_change
        self._contact = contact
        self._journal = journal
        self._tracks = tracks
        self._metadata_only = metadata_only
        self._known: dict[str, Manifest] = {}
        self._version = ""
        self.looked = False  # it has listed, or tried to
        self.listed = False

    @property
    def follows(self) -> bool:
        """What has been told until now is all there is to tell."""
        return self.listed and not self._contact.lost

    def follow(self, stop: threading.Event) -> None:
        """Tell of every change until `stop` is set, and of what happened until then."""
        while not stop.is_set():
            started_s = time.monotonic()
            try:
                self._step(stop)
            except GoneError:
                self._version = ""
                text = "the server has forgotten the changes since the last one seen; everything was listed anew"
                self._journal.note(GAP, self._contact.name, text)
            except UnreachableError as error:
                self.looked = True
                stop.wait(self._contact.failed(error))
            if time.monotonic() - started_s < _SHORT_S:
                stop.wait(_SHORT_S)
        self._finish()

    def _step(self, stop: threading.Event) -> None:
        resumes = bool(self._version)
        if not resumes:
            self._list()
        stream = self._open(_WATCH_S)
        self._contact.made(missed=not resumes)
        self.looked = True
        if stop.is_set():
            stream.interrupt()  # whoever interrupts all streams may have done so just before this one was open
        try:
            self._read(stream)
        except UnreachableError as error:
            # Nothing is lost: the next watch goes on from the last version seen.
            self._journal.note(RETRY, self._contact.name, f"{error}; resumed")

    def _finish(self) -> None:
        """What has happened before the end, and was not told yet."""
        if self._version:
            try:
                self._read(self._open(_LAST_WATCH_S))
                self._contact.made()
            except (UnreachableError, GoneError) as error:
                self._contact.failed(error)
        self._contact.end()

    def _list(self) -> None:
        listed: set[str] = set()
        token = ""
        while True:
            query = {**self._query, "limit": _PAGE} | ({"continue": token} if token else {})
            try:
                page = self._api.get(self._path, query, metadata_only=self._metadata_only)
            except UnreachableError as error:
                if error.status == _GONE and token:
                    token = ""  # the listing took longer than the server remembers: begin anew
                    continue
                raise
            for manifest in page.get("items") or ():
                listed.add(str(manifest["metadata"]["uid"]))
                self._tell("ADDED", manifest)
            metadata = page.get("metadata") or {}
            token = str(metadata.get("continue") or "")
            if not token:
                break
        for uid in set(self._known) - listed:
            self._tell("DELETED", self._known[uid])
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
                self._tell(kind, manifest)

    def _tell(self, kind: str, manifest: Manifest) -> None:
        if self._tracks:
            metadata = manifest["metadata"]
            if kind == "DELETED":
                self._known.pop(str(metadata["uid"]), None)
            elif metadata["uid"] not in self._known:
                kept = {name: metadata[name] for name in _KEPT if name in metadata}
                self._known[str(metadata["uid"])] = {"metadata": kept}
        self._on_change(kind, manifest)
