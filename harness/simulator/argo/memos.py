"""Memoized outputs, kept in ConfigMaps as Argo keeps them.

Source: https://argo-workflows.readthedocs.io/en/latest/memoization/; entries as Argo 4.0.8 reads and writes them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from harness.model.errors import ConfigError
from harness.simulator.argo.fields import seconds

Read = Callable[[str, str], tuple[Mapping[str, str], Mapping[str, str]] | None]  # labels and data of a ConfigMap
Write = Callable[[str, str, Mapping[str, str], Mapping[str, str]], None]

_KEY = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]*")
_LABEL, _CACHE = "workflows.argoproj.io/configmap-type", "Cache"
_MOST_BYTES = 2**20  # of a ConfigMap


class MemoError(Exception):
    """A cache that Argo can't use, with its message."""


@dataclass(frozen=True, slots=True)
class Memo:
    """Where the outputs of a node are kept: key and ConfigMap. Entries older than `most_age_s` count as none."""

    cache: str
    key: str
    most_age_s: float | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Memo":
        """The ``memoize`` of a template, its tags replaced.

        Raises:
            MemoError: its age is no duration.
        """
        try:
            age = seconds(given["maxAge"]) if given.get("maxAge") else None
        except ConfigError as error:
            raise MemoError(f"invalid maxAge: {error.message}") from error
        return cls(str(given["cache"]["configMap"]["name"]), str(given["key"]), age)

    def status(self, *, hit: bool) -> dict[str, object]:
        """``memoizationStatus`` of a node."""
        return {"cacheName": self.cache, "hit": hit, "key": self.key}


class Memos:
    """All caches of one controller.

    Args:
        read: a ConfigMap by namespace and name.
        write: stores one.
        clock: the simulated time of day.
    """

    def __init__(self, read: Read, write: Write, clock: Callable[[], datetime]) -> None:
        self._read = read
        self._write = write
        self._clock = clock

    def load(self, namespace: str, memo: Memo) -> dict[str, str] | None:
        """The output parameters that were kept; none if there are none, or they are too old.

        Raises:
            MemoError: the key or the ConfigMap can't be used.
        """
        labels, data = self._cache(namespace, memo)
        if memo.key not in data:
            return None
        try:
            entry = json.loads(data[memo.key])
            made = datetime.fromisoformat(entry["creationTimestamp"]).astimezone(UTC)
            outputs = {
                str(parameter["name"]): str(parameter["value"])
                for parameter in (entry.get("outputs") or {}).get("parameters") or ()
                if "value" in parameter
            }
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise MemoError(f"malformed cache entry: could not unmarshal JSON; unable to parse: {error}") from error
        if not entry.get("nodeID"):
            return None
        self._put(namespace, memo, labels, {**data, memo.key: json.dumps({**entry, "lastHitTimestamp": self._now()})})
        age_s = (self._clock() - made).total_seconds()
        return outputs if memo.most_age_s is None or age_s <= memo.most_age_s else None

    def save(self, namespace: str, memo: Memo, node: str, outputs: Mapping[str, Any]) -> None:
        """Keep the outputs of the node with this id.

        Raises:
            MemoError: the ConfigMap can't be used.
        """
        _, data = self._cache(namespace, memo)
        now = self._now()
        entry = {"nodeID": node, "outputs": outputs or None, "creationTimestamp": now, "lastHitTimestamp": now}
        self._put(namespace, memo, {_LABEL: _CACHE}, {**data, memo.key: json.dumps(entry, separators=(",", ":"))})

    def _cache(self, namespace: str, memo: Memo) -> tuple[Mapping[str, str], Mapping[str, str]]:
        if not _KEY.fullmatch(memo.key):
            raise MemoError(f"invalid cache key: {memo.key}")
        labels, data = self._read(namespace, memo.cache) or ({_LABEL: _CACHE}, {})
        if _LABEL not in labels:
            raise MemoError(f"memoization configmap doesn't have {_LABEL} label, refusing to use it")
        if labels[_LABEL] != _CACHE:
            raise MemoError(f"memoization configmap doesn't have label {_LABEL} = {_CACHE}, refusing to use it")
        return labels, data

    def _put(self, namespace: str, memo: Memo, labels: Mapping[str, str], data: Mapping[str, str]) -> None:
        if sum(len(key) + len(value.encode()) for key, value in data.items()) > _MOST_BYTES:
            raise MemoError(
                f'error creating cache entry: ConfigMap "{memo.cache}" is invalid: []: Too long: may not be more than '
                f"{_MOST_BYTES} bytes"
            )
        self._write(namespace, memo.cache, labels, data)

    def _now(self) -> str:
        return self._clock().strftime("%Y-%m-%dT%H:%M:%SZ")
