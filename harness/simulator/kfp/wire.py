"""Requests and answers of the KFP API's gateway as bytes: JSON with unset fields left out, multipart uploads."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kfp.errors import RpcError, invalid, malformed


def answer(document: object, status: int = 200) -> web.Response:
    """A document."""
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def refusal(error: RpcError) -> web.Response:
    """An error as grpc-gateway sends it."""
    code, details = int(error.code), []
    if error.told is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.Status", "code": code, "message": error.told})
    return answer({"code": code, "message": error.message, "details": details}, error.code.http)


def listing(name: str, rows: Sequence[Mapping[str, Any]], total: int, token: str) -> web.Response:
    """A page of a list."""
    return joined(name, [orjson.dumps(row) for row in rows], total, token)


def joined(name: str, rows: list[bytes], total: int, token: str) -> web.Response:
    """A page of a list whose rows are JSON already; nothing at all is ``{}``."""
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
        RpcError: 400: not a message, or one with other fields than the `known` ones.
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
    """A text of a message, "" where it is unset.

    Raises:
        RpcError: 400: it is none.
    """
    value = message.get(name)
    if value is not None and not isinstance(value, str):
        raise malformed(f"proto: invalid value for string field {name}: {value}")
    return value or ""


def inner(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A message within a message, empty where it is unset.

    Raises:
        RpcError: 400: it is none.
    """
    value = message.get(name)
    if value is not None and not isinstance(value, dict):
        raise malformed(f"proto: syntax error: unexpected token {value} in {name}")
    return value or {}


def _snake(name: str) -> str:
    """Proto JSON accepts a field's name in both spellings."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


async def uploaded(request: web.Request) -> bytes:
    """The file of a multipart upload.

    Raises:
        RpcError: 400: there is none.
    """
    if request.content_type.startswith("multipart/"):
        with suppress(ValueError, AssertionError):  # what is no multipart has no file
            async for part in await request.multipart():
                if getattr(part, "name", None) == "uploadfile":
                    return bytes(await part.read(decode=True))  # type: ignore[union-attr]  # nobody nests them here
    raise invalid("Failed to read pipeline from file")


def upload_refusal(error: RpcError, told: str) -> web.Response:
    """An upload is no call of gRPC's, and its errors have a form of their own; `told` says what failed."""
    text = error.told if error.code.http == 400 and error.told else told
    return answer({"error_message": text, "error_details": text}, error.code.http)
