"""Replays recorded questions to a platform, and compares its answers with the recorded ones.

A recorded answer holds the ids, page tokens and instants of another platform. Ids and tokens are learned from the
answers as they come, and put in their place in later questions; instants are compared by their form.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

API = "/apis/v2beta1"
RECORDED = Path(__file__).parents[1] / "conformance" / "recorded"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INSTANT = re.compile(r"(?!1970|0001)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_GENERATED = re.compile(r"(?<=training-)[a-z0-9]{5}\b")  # the end of a workflow's name
_STACK = re.compile(r"\n\S+\n\t\S+\.go:\d+.*", re.DOTALL)
_TOKEN = "next_page_token"
_BOUNDARY = "boundary-of-the-upload"
Json = Any


@dataclass(frozen=True)
class Answer:
    """A response; the body is parsed if it is JSON, whatever its content type says."""

    status: int
    content_type: str
    body: Json


@dataclass
class Replay:
    """Asks one platform the recorded questions in their order.

    Args:
        url: the platform.
        package: the pipeline to upload.
        names: by recorded id, token or tag: this platform's.
        headers: of each request.
    """

    url: str
    package: str
    names: dict[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, question: Mapping[str, Json]) -> Answer:
        """The platform's answer to a recorded question."""
        path = quote(self.here(question["path"]), safe="/%:!")
        query = urlencode({name: self.here(value) for name, value in question.get("query", {}).items()})
        data, content_type = self._data(question)
        headers = {
            **self.headers,
            **question.get("headers", {}),
            **({"content-type": content_type} if data is not None else {}),
        }
        request = Request(f"{self.url}{path}{'?' if query else ''}{query}", data, headers, method=question["method"])
        try:
            with urlopen(request) as response:
                return _answer(response)
        except HTTPError as error:
            with error:
                return _answer(error)

    def send(self, method: str, path: str, body: Json = None) -> Answer:
        """The platform's answer to a question that was not recorded."""
        question = {"method": method, "path": path}
        return self.ask(question if body is None else question | {"body": body, "content_type": "application/json"})

    def _data(self, question: Mapping[str, Json]) -> tuple[bytes | None, str]:
        if upload := question.get("upload"):
            given = self.package if upload["content"].startswith("(text of") else upload["content"]
            disposition = f'form-data; name="{upload["field"]}"; filename="{upload["filename"]}"'
            lines = (
                f"--{_BOUNDARY}", f"Content-Disposition: {disposition}", "Content-Type: application/yaml", "", given,
                f"--{_BOUNDARY}--", "",
            )  # fmt: skip
            return "\r\n".join(lines).encode(), f"multipart/form-data; boundary={_BOUNDARY}"
        if "body" not in question:
            return None, ""
        body = question["body"]
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
        return self.here(text).encode(), question["content_type"]

    def here(self, text: str) -> str:
        """A recorded text with the names of this platform."""
        for recorded, own in self.names.items():
            text = text.replace(recorded, own)
        return text

    def learn(self, recorded: Json, answered: Json) -> None:
        """Note this platform's name for each id and token that an answer shows for the first time."""
        if isinstance(recorded, dict) and isinstance(answered, dict):
            for name in recorded.keys() & answered.keys():
                if name == _TOKEN:
                    self.names[recorded[name]] = answered[name]
                elif name != "runs":  # rows of the same second are in the order of their ids
                    self.learn(recorded[name], answered[name])
        elif isinstance(recorded, list) and isinstance(answered, list):
            for one, other in zip(recorded, answered, strict=False):
                self.learn(one, other)
        elif isinstance(recorded, str) and isinstance(answered, str):
            for one, other in zip(UUID.findall(recorded), UUID.findall(answered), strict=False):
                self.names.setdefault(one, other)


def _answer(response: Any) -> Answer:
    text = response.read().decode()
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return Answer(response.status, response.headers.get("content-type", ""), body)


@dataclass(frozen=True)
class Comparison:
    """Compares answers with recorded ones.

    Args:
        here: puts the platform's own names into a recorded text.
        rows: by id in the recording, the row of a run as any list showed it. Which runs share a page depends on their
            ids; a run without a row must have the same fields as one that has.
        tasks: the sets of fields that a recorded task has.
        spec: the uploaded pipeline, which the recording leaves out.
    """

    here: Callable[[str], str]
    rows: Mapping[str, Json]
    tasks: frozenset[frozenset[str]]
    spec: Json

    def differences(self, recorded: Mapping[str, Json], answered: Answer) -> dict[str, str]:
        """What differs, by the path in the answer."""
        found = {}
        for name in ("status", "content_type"):
            if getattr(answered, name) != recorded[name]:
                found[name] = f"recorded {recorded[name]}, answered {getattr(answered, name)}"
        if "body" in recorded:
            count = recorded["body"]["total_size"] if recorded.get("cut") else None
            found |= dict(self._compared("", recorded["body"], answered.body, count))
        return found

    def _compared(self, at: str, recorded: Json, answered: Json, rows: int | None = None) -> Iterator[tuple[str, str]]:
        if isinstance(recorded, dict) and isinstance(answered, dict):
            for name in sorted(recorded.keys() | answered.keys()):
                below = f"{at}.{name}" if at else name
                if name not in answered:
                    yield below, f"only recorded: {_short(recorded[name])}"
                elif name not in recorded:
                    yield below, f"only answered: {_short(answered[name])}"
                else:
                    yield from self._field(name, below, recorded[name], answered[name], rows)
        elif isinstance(recorded, list) and isinstance(answered, list):
            if len(recorded) != len(answered):
                yield f"{at}[]", f"recorded {len(recorded)}, answered {len(answered)}"
            for one, other in zip(recorded, answered, strict=False):
                yield from self._compared(f"{at}[]", one, other)
        elif _plain(self.here(recorded) if isinstance(recorded, str) else recorded) != _plain(answered):
            yield at, f"recorded {_short(recorded)}, answered {_short(answered)}"

    def _field(self, name: str, at: str, recorded: Json, answered: Json, rows: int | None) -> Iterator[tuple[str, str]]:
        match name:
            case "next_page_token":  # both have one
                return
            case "runs":
                yield from self._runs(at, recorded, answered, rows or len(recorded))
            case "task_details":
                yield from self._tasks(at, answered)
            case "pipeline_spec":
                yield from self._compared(at, self.spec, answered)
            case _:
                yield from self._compared(at, recorded, answered)

    def _runs(self, at: str, recorded: Json, answered: Json, count: int) -> Iterator[tuple[str, str]]:
        if count != len(answered):
            yield f"{at}[]", f"recorded {count}, answered {len(answered)}"
        directions = [_ordered(rows) for rows in (recorded, answered)]
        if directions[0] and not directions[0] & directions[1]:
            yield f"{at}[]", f"recorded in {directions[0]} order of creation and id, answered in {directions[1]}"
        known = {self.here(run): row for run, row in self.rows.items()}
        for row in answered:
            if row["run_id"] in known:
                yield from self._compared(f"{at}[]", known[row["run_id"]], row)
            elif row.keys() not in (each.keys() for each in known.values()):
                yield f"{at}[]", f"recorded no run with the fields {', '.join(sorted(row))}"

    def _tasks(self, at: str, answered: Json) -> Iterator[tuple[str, str]]:
        ids = [task["task_id"] for task in answered]
        if ids != sorted(ids):
            yield at, "recorded in the order of their ids"
        if not all(UUID.fullmatch(each) for each in ids):
            yield f"{at}[].task_id", f"recorded a UUID, answered {ids[0]}"
        for fields in {frozenset(task) for task in answered} - self.tasks:
            yield f"{at}[]", f"recorded no task with the fields {', '.join(sorted(fields))}"


def _ordered(rows: Json) -> set[str]:
    """The directions in which the rows are sorted by creation, and then by id; both for fewer than two rows."""
    keys = [(row["created_at"], row["run_id"]) for row in rows]
    return {name for name, backwards in (("asc", False), ("desc", True)) if keys == sorted(keys, reverse=backwards)}


def rows_of(answers: list[Mapping[str, Json]]) -> dict[str, Json]:
    """By id, the rows of all runs in the recorded lists."""
    bodies = (each["answer"].get("body") for each in answers)
    return {row["run_id"]: row for body in bodies if isinstance(body, dict) for row in body.get("runs", ())}


def task_fields(document: Json) -> frozenset[frozenset[str]]:
    """The sets of fields of all tasks in a document."""
    if isinstance(document, list):
        return frozenset().union(*map(task_fields, document))
    if not isinstance(document, dict):
        return frozenset()
    own = frozenset(map(frozenset, document.get("task_details", ())))
    return own.union(*map(task_fields, document.values()))


def _plain(value: Json) -> str:
    """A value without what differs between platforms; numbers as they are written."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f'"{_STACK.sub("(stack)", _GENERATED.sub("*****", _INSTANT.sub("(instant)", value)))}"'


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
