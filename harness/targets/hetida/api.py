"""Calls to hetida designer outside the submit path: JSON in, JSON out, every error explained."""

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import LONG_ANSWER, Exchange, HttpAnswer, HttpRequest
from harness.targets.answers import JSON, demand_access, hint_for, refusal_hint
from harness.targets.hetida.answers import error_text

_PINGS = 3


def round_trip_s(exchange: Exchange, path: str, kind: str) -> float:
    """Seconds of the fastest of a few exchanges that cost the platform nothing; `kind` names it in errors.

    Raises:
        TargetUnreachableError: `path` is not answered as by hetida designer.
    """
    return min(_timed(exchange, path, kind) for _ in range(_PINGS))


def release(exchange: Exchange, path: str, component: str) -> dict[str, str]:
    """The version that a component names at `path`, by the component's name; empty if it names none."""
    answer = exchange(HttpRequest("GET", path))
    try:
        named = orjson.loads(answer.body).get("version") if answer.status // 100 == 2 else None
    except (ValueError, AttributeError):
        return {}
    return {component: named} if isinstance(named, str) and named else {}


def _timed(exchange: Exchange, path: str, kind: str) -> float:
    begun = time.perf_counter()
    answer = exchange(HttpRequest("GET", path))
    taken_s = time.perf_counter() - begun
    demand_access(answer, f"GET {path}", error_text, refusal_hint)
    if answer.status // 100 != 2:
        text = error_text(answer)
        raise TargetUnreachableError(
            f"GET {path} answered {answer.status} {text}",
            hint_for(text, f"is --host the address of {kind} of hetida designer, and --mode right?"),
        )
    return taken_s


class Backend:
    """A backend behind an exchange; `root` is the path of its API.

    Every method raises `TargetUnreachableError` when the answer is not that of a backend.
    """

    def __init__(self, exchange: Exchange, root: str) -> None:
        self._exchange = exchange
        self._root = root

    def adapters(self) -> list[Mapping[str, Any]]:
        """The adapters that it knows."""
        return [each for each in self._get("/adapters/") if isinstance(each, Mapping)]

    def transformation(self, id_: str, package: bytes | None) -> Any:
        """The transformation as the backend has it; `package` is uploaded if it has none.

        Raises:
            ConfigError: there is no such transformation, or the backend rejects the package.
        """
        path = f"/transformations/{quote(id_)}"
        answer = self._exchange(HttpRequest("GET", f"{self._root}{path}"))
        if answer.status == 404 and package is not None:
            self._upload(path, package)
            return orjson.loads(package)
        if answer.status in {404, 422}:
            raise ConfigError(
                f"the backend has no transformation {id_}: {error_text(answer)}",
                "look up --transformation in hetida designer, or give the exported file",
            )
        return _parsed(answer, f"GET /transformations/{id_}")

    def latest(self, group: str) -> Any:
        """The latest released revision of a group, chosen as the backend does.

        Raises:
            ConfigError: there is none.
        """
        listed = self._get(f"/transformations/?{urlencode({'revision_group_id': group})}")
        released = [
            each
            for each in (listed if isinstance(listed, list) else ())
            if each.get("revision_group_id") == group and each.get("state") == "RELEASED"
        ]
        if not released:
            raise ConfigError(
                f"the backend has no released revision in the group {group}", "release one, or give --transformation ID"
            )
        return max(released, key=lambda each: str(each.get("released_timestamp") or ""))

    def _upload(self, path: str, package: bytes) -> None:
        request = HttpRequest("PUT", f"{self._root}{path}?update_component_code=False", package, JSON)
        answer = self._exchange(request)
        if answer.status in {400, 422}:
            raise ConfigError(f"the backend rejects the transformation: {error_text(answer)}", "fix the file")
        _parsed(answer, f"PUT {path}")

    def _get(self, path: str) -> Any:
        return _parsed(
            self._exchange(HttpRequest("GET", self._root + path, most_bytes=LONG_ANSWER)),
            f"GET {path.partition('?')[0]}",
        )


def _parsed(answer: HttpAnswer, where: str) -> Any:
    if answer.status // 100 != 2:
        said, healthy = error_text(answer), "is the backend healthy, and its version supported?"
        hint = refusal_hint(said) if answer.status in {401, 403} else healthy
        raise TargetUnreachableError(f"{where} answered {answer.status} {said}", hint)
    try:
        return orjson.loads(answer.body)
    except ValueError:
        raise TargetUnreachableError(
            f"{where} answered {error_text(answer)} instead of JSON",
            "is --host the backend (often http://…/hdapi), and not a login page or another service?",
        ) from None
