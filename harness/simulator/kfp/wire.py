"""Requests and responses of the KFP API's gateway: JSON without unset fields, multipart uploads."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kfp.errors import RpcError, malformed


def answer(document: object, status: int = 200) -> web.Response:
    """A JSON response; unset fields are left out."""
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def refusal(error: RpcError) -> web.Response:
    """The error response of grpc-gateway; its own refusals have no details."""
    document: dict[str, Any] = {"code": int(error.code), "message": error.message}
    if error.detail is not None:
        status = {"@type": "type.googleapis.com/google.rpc.Status", "code": int(error.code), "message": error.detail}
        document["details"] = [status]
    return answer(document, error.code.http)


def listing(name: str, rows: Sequence[Mapping[str, Any]], total: int, token: str) -> web.Response:
    """A page of a list."""
    return joined(name, [orjson.dumps(row) for row in rows], total, token)


def joined(name: str, rows: list[bytes], total: int, token: str) -> web.Response:
    """A page of a list whose rows are JSON already; an empty list is ``{}``."""
    parts = []
    if rows:
        parts.append(b'"%s":[%s]' % (name.encode(), b",".join(rows)))
    if total:
        parts.append(b'"total_size":%d' % total)
    if token:
        parts.append(b'"next_page_token":%s' % orjson.dumps(token))
    return web.Response(body=b"{" + b",".join(parts) + b"}", content_type="application/json")


async def body(request: web.Request, known: frozenset[str]) -> dict[str, Any]:
    """The fields of a message, by their names in snake_case.

    Raises:
        RpcError: 400: not a message, or a field that is not `known`.
    """
    data = await request.read()
    try:
        text = data.decode() or "{}"
        given = orjson.loads(text)
    except UnicodeDecodeError as error:
        raise malformed("proto: syntax error (line 1:1): invalid UTF-8 detected") from error
    except ValueError as error:
        raise malformed(_syntax_error(text)) from error
    if not isinstance(given, dict):
        raise malformed(f"proto: syntax error {_place(text, 0)}: unexpected token {text.lstrip()[:1]}")
    for name in given:
        if snake(name) not in known:
            place = _place(text, text.find(f'"{name}"'))
            raise malformed(f'proto: {place}: unknown field "{name}"')
    return {snake(name): value for name, value in given.items()}


def _syntax_error(text: str) -> str:
    """What protojson says about text that is not JSON: of a text that merely stops, only that."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            return "unexpected EOF"
        return f"proto: syntax error {_place(text, error.pos)}: invalid value {text[error.pos :].split(maxsplit=1)[0]}"
    except RecursionError:
        return "proto: exceeded max recursion depth"
    return "proto: syntax error (line 1:1): invalid value"  # JSON to Python, but not to orjson


def _place(text: str, at: int) -> str:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    return f"(line {line}:{column})"


def text(message: Mapping[str, Any], name: str) -> str:
    """A string field of a message, "" if unset.

    Raises:
        RpcError: 400: not a string.
    """
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise malformed(f"proto: invalid value for string field {name}: {value}")
    return value or ""


def inner(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested message, empty if unset.

    Raises:
        RpcError: 400: not a message.
    """
    value = message.get(name)
    if value is not None and not isinstance(value, dict):
        raise malformed(f"proto: syntax error: unexpected token {value} in {name}")
    return value or {}


def snake(name: str) -> str:
    """The snake_case name of a field: proto JSON accepts both spellings."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file."""

    name: str
    data: bytes


async def uploaded(request: web.Request) -> Upload | None:
    """The file of a multipart upload; none if the request has no such part."""
    if request.content_type.startswith("multipart/"):
        with suppress(ValueError, AssertionError):  # a malformed upload has no file
            async for part in await request.multipart():
                if getattr(part, "name", None) == "uploadfile":
                    data = bytes(await part.read(decode=True))  # type: ignore[union-attr]  # never nested here
                    return Upload(getattr(part, "filename", None) or "", data)
    return None


def upload_refusal(status: int, message: str, handler: str, *, typed: bool = True) -> web.Response:
    """The error of an upload, which is not a gRPC call: its format is its own, with a stack trace of the server.

    Until the server has read the file it does not set the content type (`typed` is false).
    """
    trace = (
        f"github.com/kubeflow/pipelines/backend/src/apiserver/server.(*PipelineUploadServer).{handler}",
        "\tbackend/src/apiserver/server/pipeline_upload_server.go:87",
        "net/http.HandlerFunc.ServeHTTP",
        "\tnet/http/server.go:2322",
    )
    refused = answer({"error_message": message, "error_details": "\n".join((message, *trace))}, status)
    if not typed:
        refused.headers["Content-Type"] = "text/plain; charset=utf-8"
    return refused
