"""Structure-aware mutations of real files: a value of a document is replaced, removed or repeated, or bytes change."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

DEEP: Any = []
for _ in range(150):
    DEEP = [DEEP]
WEIRD = (
    None, True, False, 0, -1, 1, 1.5, -0.5, 1e308, 2**31, 2**53 + 1, 2**62, 2**63, 10**30, "", " ", "x", "..", "../../x", "/", "\x1b[2J", "NaN",
    "inf", "1e400", "9" * 5000, "2024-13-45", "{id:>9999999999}", "{load:>9999999999}", "{0.__class__}", "ä😀", "\u202e", [], [[]], [None], [1],
    ["x"], {}, {"a": None}, {"a": {"b": [1]}}, [{}], DEEP, "a\nb", "=cmd|' /C calc'!A0", "99999999d", "1e18/s",
)  # fmt: skip


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document."""
    yield path
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from places(value, (*path, key))


def changed(tree: Any, path: tuple[Any, ...], how: str, value: Any) -> Any:
    """A copy of the document with one value replaced, removed, repeated or renamed."""
    if not path:
        return value
    tree = copy.deepcopy(tree)
    at = tree
    for key in path[:-1]:
        at = at[key]
    last = path[-1]
    match how:
        case "remove":
            del at[last]
        case "repeat" if isinstance(at, list):
            at.append(at[last])
        case "rename" if isinstance(at, dict) and isinstance(value, str | int | float):
            at[value] = at.pop(last)
        case _:
            at[last] = value
    return tree


@st.composite
def trees(draw: st.DrawFn, tree: Any) -> Any:
    """The document with one to three of its values changed."""
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(tree))))
        how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "repeat", "rename"]))
        tree = changed(tree, path, how, draw(st.sampled_from(WEIRD)))
    return tree


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes cut, overwritten or repeated somewhere."""
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    noise = draw(
        st.sampled_from(
            [b"", b"\xff", b"\x00", b"[" * 5000, b"- " * 5000, b'"', b"\n", b"\x1b", b"9" * 5000, b": ", b"{", b",,,"]
        )
    )
    match draw(st.integers(0, 2)):
        case 0:
            return content[:at] + noise
        case 1:
            return content[:at] + noise + content[at + len(noise) :]
        case _:
            return content[:at] + noise + content[at:]


def documents(content: bytes, parse: Callable[[bytes], Any], write: Callable[[Any], bytes]) -> st.SearchStrategy[bytes]:
    """Mutations of one document, mostly of its structure."""
    tree = parse(content)
    return st.one_of(trees(tree).map(write), trees(tree).map(write), damaged(content))


def json_documents(content: bytes) -> st.SearchStrategy[bytes]:
    """Mutations of a JSON document."""
    return documents(content, json.loads, lambda tree: json.dumps(tree).encode())


def yaml_documents(content: bytes) -> st.SearchStrategy[bytes]:
    """Mutations of a YAML document."""
    return documents(content, yaml.safe_load, lambda tree: yaml.safe_dump(tree, allow_unicode=True).encode())


def json_lines(content: bytes) -> st.SearchStrategy[bytes]:
    """Mutations of one of the lines."""
    lines = content.splitlines(keepends=True)

    def with_line(chosen: int) -> st.SearchStrategy[bytes]:
        rest = b"".join(lines[:chosen] + lines[chosen + 1 :])
        return json_documents(lines[chosen].strip()).map(lambda line: rest + line + b"\n")

    return st.integers(0, min(len(lines), 50) - 1).flatmap(with_line)


def tables(content: bytes) -> st.SearchStrategy[bytes]:
    """Mutations of the cells of a CSV."""
    rows = [line.split(",") for line in content.decode().splitlines()[:50]]

    def written(tree: Any) -> bytes:
        lines = tree if isinstance(tree, list) else [tree]
        return "\n".join(",".join(map(str, row)) if isinstance(row, list) else str(row) for row in lines).encode(
            "utf-8", "replace"
        )

    return st.one_of(trees(rows).map(written), damaged(content))
