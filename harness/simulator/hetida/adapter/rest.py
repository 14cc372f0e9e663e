"""The contract of generic REST adapters: browsing for the user interface, data for runtimes."""

import asyncio
import base64
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.hetida.adapter.limits import Gate, InjectedError
from harness.simulator.hetida.adapter.plants import METRICS, Plants, endpoint, instant
from harness.simulator.serving import ListenOptions, StopSignal, announce, listening

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LINES = "application/x-ndjson"
_ATTRIBUTES = "Data-Attributes"
_MOST_BYTES = 256 * 2**20
_MOST_POINTS = 2_000_000  # per response: almost four years of one series
_SERIES = "/timeseries"
_KINDS = ("sources", "sinks", "thingNodes")


def application(plants: Plants, gate: Gate, name: str = "plants") -> web.Application:
    """The adapter called `name`; data requests pass through the gate."""
    app = web.Application(client_max_size=_MOST_BYTES)
    _Browsing(plants, name).mount(app)
    _Data(plants, gate).mount(app)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=gate.metrics(), content_type="text/plain")

    app.router.add_get("/metrics", metrics)
    return app


class _Browsing:
    """``/info``, ``/structure``, ``/thingNodes``, ``/sources``, ``/sinks``, and metadata of each."""

    def __init__(self, plants: Plants, name: str) -> None:
        self._plants = plants
        self._name = name
        self._metadata: dict[tuple[str, str], dict[str, Any]] = {}

    def mount(self, app: web.Application) -> None:
        app.router.add_get("/info", self._info)
        app.router.add_get("/structure", self._structure)
        for kind in _KINDS:
            app.router.add_get(f"/{kind}/{{id:.+}}/metadata/", self._list_metadata)
            app.router.add_get(f"/{kind}/{{id:.+}}/metadata/{{key}}", self._get_metadata)
            app.router.add_post(f"/{kind}/{{id:.+}}/metadata/{{key}}", self._post_metadata)
            app.router.add_get(f"/{kind}", self._list)
            app.router.add_get(f"/{kind}/", self._list)
            app.router.add_get(f"/{kind}/{{id:.+}}", self._one)

    async def _info(self, _: web.Request) -> web.Response:
        return _json({"id": self._name, "name": self._name, "version": "1"})

    async def _structure(self, request: web.Request) -> web.Response:
        parent = request.query.get("parentId")
        found: dict[str, Any] = {"id": self._name, "name": self._name, "thingNodes": [], "sources": [], "sinks": []}
        if parent is None:
            found["thingNodes"] = list(self._plants.nodes())
        else:
            found["sources"], found["sinks"] = list(self._plants.sources(parent)), list(self._plants.sinks(parent))
        return _json(found)

    async def _list(self, request: web.Request) -> web.Response:
        kind, wanted = _kind(request), request.query.get("filter", "").lower()
        every = {"sources": self._plants.sources, "sinks": self._plants.sinks, "thingNodes": self._plants.nodes}[kind]()
        found = [each for each in every if wanted in each["id"].lower()]
        return _json({"resultCount": len(found), kind: found})

    async def _one(self, request: web.Request) -> web.Response:
        kind, name = _kind(request), request.match_info["id"]
        if kind == "thingNodes":
            return _json({"id": name, "parentId": None, "name": name, "description": ""})
        return _json(endpoint(name))

    async def _list_metadata(self, request: web.Request) -> web.Response:
        owner = self._owner(request)
        return _json([each for (of, _), each in self._metadata.items() if of == owner])

    async def _get_metadata(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        found = self._metadata.get((self._owner(request), key))
        return _json(found) if found else _json({"detail": f"unknown metadatum {key}"}, 404)

    async def _post_metadata(self, request: web.Request) -> web.Response:
        body = _parsed(await request.read())
        key = request.match_info["key"]
        self._metadata[self._owner(request), key] = {"key": key, **body}
        return _json({})

    @staticmethod
    def _owner(request: web.Request) -> str:
        return request.path.rsplit("/metadata/", 1)[0]


def _kind(request: web.Request) -> str:
    """The kind in a path, wherever the adapter is mounted."""
    return next(part for part in request.path.split("/") if part in _KINDS)


class _Data:
    """``/timeseries``, ``/dataframe``, ``/multitsframe``: GET is line-delimited JSON, POST a JSON list."""

    def __init__(self, plants: Plants, gate: Gate) -> None:
        self._plants = plants
        self._gate = gate
        self._sent: dict[str, tuple[list[dict[str, Any]], str]] = {}  # posted rows and their attributes

    def mount(self, app: web.Application) -> None:
        for path, read in (
            (_SERIES, self._timeseries),
            ("/dataframe", self._dataframe),
            ("/multitsframe", self._multitsframe),
        ):
            app.router.add_get(path, self._gated(path, self._reading(read)))
            app.router.add_post(path, self._gated(path, self._post))

    def _gated(self, path: str, handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                async with self._gate.request(path):
                    return await handler(request)
            except InjectedError:
                return _json({"detail": "an injected error"}, 503)

        return handle

    @staticmethod
    def _reading(rows: Callable[[web.Request], tuple[Iterable[Mapping[str, Any]], str]]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            found, attributes = rows(request)
            body = b"".join(orjson.dumps(row) + b"\n" for row in found)
            headers = {_ATTRIBUTES: attributes} if attributes else {}
            return web.Response(body=body, content_type=_LINES, headers=headers)

        return handle

    def _timeseries(self, request: web.Request) -> tuple[Iterable[Mapping[str, Any]], str]:
        names = _ids(request)
        begin, end = self._range(request, len(names))
        attributes = {name: {"ref_interval_start_timestamp": request.query["from"],
                             "ref_interval_end_timestamp": request.query["to"]} for name in names}  # fmt: skip
        return self._points(names, begin, end), base64.b64encode(orjson.dumps(attributes)).decode()

    def _points(self, names: Iterable[str], begin: datetime, end: datetime) -> Iterator[Mapping[str, Any]]:
        for name in names:
            if name in self._sent:
                rows = self._sent[name][0]
                yield from ({"timeseriesId": name, **row} for row in rows if begin <= instant(row["timestamp"]) <= end)
                continue
            for at, value in self._plants.series(name, begin, end):
                yield {"timeseriesId": name, "timestamp": at, "value": value}

    def _multitsframe(self, request: web.Request) -> tuple[Iterable[Mapping[str, Any]], str]:
        name = _ids(request)[0]
        begin, end = self._range(request, len(METRICS))
        if name in self._sent:
            return self._sent[name]
        rows = (
            {"timestamp": at, "metric": source["name"], "value": value}
            for source in self._plants.sources(name)
            for at, value in self._plants.series(source["id"], begin, end)
        )
        return rows, ""

    def _dataframe(self, request: web.Request) -> tuple[Iterable[Mapping[str, Any]], str]:
        name = _ids(request)[0]
        if name in self._sent:
            return self._sent[name]
        return ({"plant": node["id"], "name": node["name"]} for node in self._plants.nodes()), ""

    async def _post(self, request: web.Request) -> web.Response:
        name = request.query.get("timeseriesId") or request.query.get("id")
        if not name:
            raise _unprocessable("id is required")
        rows = _parsed(await request.read(), list)
        if not all(isinstance(row, dict) for row in rows):
            raise _unprocessable("a row is not an object")
        if request.path.endswith(_SERIES):
            _check_stamps(rows)
        self._sent[name] = (rows, request.headers.get(_ATTRIBUTES, ""))
        return _json({})

    def _range(self, request: web.Request, series: int) -> tuple[datetime, datetime]:
        """The requested time range, for this many series."""
        try:
            begin, end = instant(request.query["from"]), instant(request.query["to"])
        except (KeyError, ValueError) as error:
            raise _unprocessable(f"from and to are required, as ISO 8601: {error}") from error
        points = series * self._plants.points(begin, end)
        if points > _MOST_POINTS:
            raise _unprocessable(f"{points:,} points requested: at most {_MOST_POINTS:,} are allowed")
        return begin, end


def _ids(request: web.Request) -> list[str]:
    names = request.query.getall("id", [])
    if not names:
        raise _unprocessable("id is required")
    return names


def _check_stamps(rows: Iterable[Mapping[str, Any]]) -> None:
    try:
        for row in rows:
            instant(str(row["timestamp"]))
    except (KeyError, ValueError) as error:
        raise _unprocessable(f"each row needs a timestamp, as ISO 8601: {error}") from error


def _parsed(raw: bytes, kind: type = dict) -> Any:
    try:
        body = orjson.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, kind):
        raise _unprocessable("the body is not of the expected type")
    return body


def _unprocessable(detail: str) -> web.HTTPUnprocessableEntity:
    text = orjson.dumps({"detail": detail}).decode()
    return web.HTTPUnprocessableEntity(text=text, content_type="application/json")


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")


# --- the served adapter: one process on one port ---------------------------------------------------------------------


_CHECK_S = 1.0  # interval for checking the parent process


def serve(plants: Plants, gate: Gate, name: str, listen: ListenOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent process if that counts; `name` is the adapter's id."""
    asyncio.run(_serve(plants, gate, name, listen))


async def _serve(plants: Plants, gate: Gate, name: str, listen: ListenOptions) -> None:
    stop = StopSignal(listen)
    async with listening(application(plants, gate, name), listen, "the adapter") as (url, _):
        announce(listen, {"url": url, "name": name})
        print(
            f"The adapter '{name}' is served at {url} until interrupted. Configure the backend with\n"
            f'  export HETIDA_DESIGNER_ADAPTERS="{name}|{name}|{url}|{url}"',
            file=sys.stderr,
            flush=True,
        )
        while not stop:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.event.wait(), _CHECK_S)
