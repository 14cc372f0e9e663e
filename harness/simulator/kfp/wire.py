"""Requests and responses of the KFP API's gateway: JSON without unset fields, multipart uploads."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kfp.errors import RpcError, invalid, malformed


def answer(document: object, status: int = 200) -> web.Response:
    """A JSON response; unset fields are left out."""
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def refusal(error: RpcError) -> web.Response:
    """The error response of grpc-gateway."""
    code, details = int(error.code), []
    if error.detail is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.Status", "code": code, "message": error.detail})
    return answer({"code": code, "message": error.message, "details": details}, error.code.http)


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
    text = await request.read()
    try:
        given = orjson.loads(text or b"{}")
    except ValueError as error:
        raise malformed(f"proto: syntax error: {error}") from error
    if not isinstance(given, dict):
        raise malformed("proto: syntax error (line 1:1): unexpected token")
    for name in given:
        if _snake(name) not in known:
            raise malformed(f'proto: (line 1:{text.find(name.encode())}): unknown field "{name}"')
    return {_snake(name): value for name, value in given.items()}


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


def _snake(name: str) -> str:
    """The snake_case name of a field: proto JSON accepts both spellings."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


async def uploaded(request: web.Request) -> bytes:
    """The file of a multipart upload.

    Raises:
        RpcError: 400: no file.
    """
    if request.content_type.startswith("multipart/"):
        with suppress(ValueError, AssertionError):  # a malformed upload has no file
            async for part in await request.multipart():
                if getattr(part, "name", None) == "uploadfile":
                    return bytes(await part.read(decode=True))  # type: ignore[union-attr]  # never nested here
    raise invalid("Failed to read pipeline from file")


def upload_refusal(error: RpcError, detail: str) -> web.Response:
    """The error of an upload, which is not a gRPC call and has its own format; `detail` says what failed."""
    text = error.detail if error.code.http == 400 and error.detail else detail
    return answer({"error_message": text, "error_details": text}, error.code.http)
