"""The catalogue of stated reasons: rows of data, and which of them a text matches.

A text is kept as ``SOURCE/REASON: MESSAGE`` (`stated`), so that a later catalogue reads old recordings. Texts come from
outside: they are cut, and matched by RE2, whose time is linear in the text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import re2
import yaml

from harness.model.errors import ConfigError
from harness.model.text.inert import one_line
from harness.model.text.typed import KeyPath

MOST_CHARACTERS = 2_000
_MOST_ROWS = 500  # of a file: each is tried on each text
_MOST_MEMORY = 2**20  # bytes of one pattern
SCHEDULER = "scheduler"
# Sources whose texts begin with a reason; the others state none.
WITH_REASON = frozenset(
    {"kubelet-event", "waiting", "terminated", "pod-condition", "pod-status", "node-condition", "event", "autoscaler"}
)  # fmt: skip
SOURCES = WITH_REASON | {SCHEDULER, "admission", "workflow", "log", "platform"}
_SEARCHED = tuple(sorted(SOURCES - {SCHEDULER}))
LAYERS = (
    "pipeline", "registry", "scheduler", "network", "volumes", "admission", "quota", "autoscaler", "store", "database",
    "node", "platform",
)  # fmt: skip
DELAYS, FAILS, BLOCKS = EFFECTS = ("delays", "fails", "blocks")
_REQUIRED = ("name", "source", "cause", "layer", "effect", "fix", "show", "link")
# What only looks, and with no other kubeconfig, whose plugins are programs, nor another server.
_OPTION = (
    r"-[AcLlno]|"
    r"--(?:all-namespaces|containers|field-selector|previous|selector|show-labels|since|sort-by|tail)(?:=\S+)?"
)
_LOOKS = re.compile(rf"kubectl (?:-n \S+ )?(?:describe|events|get|logs|top)(?: (?:{_OPTION}|[^\s-]\S*))*")
_PLAIN = re.compile(r"(?:[\w .,:/@=-]|\[\*\]|\{(?:[\w.]|\[\*\])+\})*")
_OF_TEXT = ("name", "cause", "layer", "effect", "fix", "link", "pattern", "seen", "about", "exit_code")
_OF_TEXTS = ("source", "reason", "yields_to", "show", "change", "examples")
_PLURALS = {"source": "sources", "reason": "reasons"}
_FLAGS = ("general", "nodes_help", "beside")
_KEYS = frozenset({*_REQUIRED, *_OF_TEXT, *_OF_TEXTS, *_FLAGS, "counter"})
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_PLACE = re.compile(r"\{([a-z_]+)\}")
# The scheduler's message: "0/4 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint {a: b}. …".
_PREDICATES = re.compile(
    r"^\d+/\d+ nodes are available: (.*?)(?:[.;]? ?preemption: .*|no new claims to deallocate.*)?$", re.DOTALL
)
_NEXT = re.compile(r", (?=\d+ )")
_COUNTED = re.compile(r"(\d{1,6}) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """One cause. See the head of ``reasons.yaml`` for the meaning of each key."""

    name: str
    sources: tuple[str, ...]
    cause: str
    layer: str
    effect: str
    fix: str
    show: tuple[str, ...]
    link: str
    reasons: tuple[str, ...] = ()
    pattern: str = ""
    general: bool = False
    nodes_help: bool = False
    beside: bool = False
    change: tuple[str, ...] = ()
    seen: str = ""
    about: str = "Pod"
    exit_code: str = ""
    examples: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    def search(self, words: str) -> Mapping[str, str] | None:
        """What the pattern's groups caught in a text; none where it is not found."""
        found = _compiled(self.pattern).search(words)
        return {name: caught for name, caught in found.groupdict().items() if caught} if found else None

    def filled(self, template: str, groups: Mapping[str, str]) -> str:
        """A title or command with the pattern's groups; other braces stay."""
        return _PLACE.sub(lambda found: groups.get(found[1], found[0]), template)

    @staticmethod
    def places(template: str) -> set[str]:
        """The names in braces that a title or command needs."""
        return set(_PLACE.findall(template))


@dataclass(frozen=True, slots=True)
class Match:
    """A row that a text matches, with what its pattern's groups caught; without a row, the text is unknown."""

    row: Row | None
    groups: Mapping[str, str] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """0 where a cause is known, 1 where the text is unknown, 2 where it says only that something failed."""
        return 1 if self.row is None else 2 * self.row.general


class Catalogue:
    """Rows in their order: the first one of a source that a text matches wins."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._of_source: dict[tuple[str, str], tuple[Row, ...]] = {}
        self._known: dict[str, Match] = {}
        self._by_name = {row.name: row for row in self.rows}
        self._place = {row.name: k for k, row in enumerate(self.rows)}

    def named(self, name: str) -> Row | None:
        """The row of this name; none if there is none."""
        return self._by_name.get(name)

    def match(self, text: str) -> Match:
        """The row for a text made by `stated`; of the scheduler's, one predicate alone."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) > 2**14:
                self._known.clear()
            found = self._known[text] = self._match(text)
        return found

    def search(self, words: str) -> Match:
        """The row for words whose source is not known, such as those that Argo passes on."""
        reason = words.partition(": ")[0]
        matches = (
            self.match(f"{source}/{reason}" if source in WITH_REASON and reason == words else _as_of(source, words))
            for source in _SEARCHED
        )
        return min((match for match in matches if match.row), key=self.place, default=Match(None))

    def place(self, match: Match) -> tuple[int, int]:
        """Which of several matches tells most: a cause, then an unknown text; of rows the first one."""
        return match.rank, self._place.get(match.row.name, 0) if match.row else 0

    def _match(self, text: str) -> Match:
        source, reason, words = parsed(text)
        key = source, reason
        if key not in self._of_source:
            self._of_source[key] = tuple(
                row for row in self.rows if source in row.sources and _takes(row, source, reason)
            )
        for row in self._of_source[key]:
            if (groups := row.search(words)) is not None:
                return Match(row, groups)
        return Match(None)


def _as_of(source: str, words: str) -> str:
    return f"{source}/{words}" if source in WITH_REASON else f"{source}/: {words}"


def _takes(row: Row, source: str, reason: str) -> bool:
    return source not in WITH_REASON or not row.reasons or reason in row.reasons


@cache
def _compiled(pattern: str) -> Any:
    """A pattern of RE2, which is quiet about a wrong one.

    Raises:
        re2.error: it is wrong.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return re2.compile(pattern, options=options)


def stated(source: str, reason: str, message: str) -> str:
    """What a source stated, as one text: ``kubelet-event/FailedMount: MountVolume.SetUp failed …``."""
    words = " ".join(message.split())
    return f"{source}/{reason}: {words}"[:MOST_CHARACTERS] if words or not reason else f"{source}/{reason}"


def parsed(text: str) -> tuple[str, str, str]:
    """Source, reason, and the words in which patterns are searched: with the reason where the source states one."""
    source, _, rest = text.partition("/")
    reason, _, message = rest.partition(": ")
    return source, reason, rest if source in WITH_REASON else message


def predicates(text: str) -> list[tuple[str, int]]:
    """The scheduler's predicates in a text made by `stated`, each as such a text, with the number of its nodes.

    Other sources' texts are one.
    """
    source, reason, message = parsed(text)
    found = _PREDICATES.match(message) if source == SCHEDULER else None
    if found is None:
        return [(text, 1)]
    parts = []
    for part in _NEXT.split(found[1].strip().rstrip(".;")):
        counted = _COUNTED.fullmatch(part)
        count, words = (int(counted[1]), counted[2]) if counted else (1, part)
        parts.append((stated(source, reason, words.strip()), max(count, 1)))
    return parts


@cache
def builtin() -> Catalogue:
    """The catalogue that is part of the package; the tests check its rows, which takes as long as reading them."""
    text = files("harness.reasons").joinpath("reasons.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times as fast
    return Catalogue(map(_read, yaml.load(text, loader)["reasons"]))  # noqa: S506  # both are safe loaders


def builtin_row(name: str) -> Row:
    """The row of this name that is part of the package."""
    row = builtin().named(name)
    assert row is not None, name
    return row


def merged(own: Sequence[Row]) -> Catalogue:
    """The built-in catalogue behind a user's rows; a row replaces the built-in one of its name.

    A run folder brings its own rows and may not be trusted: commands in them that are not known to be read-only become
    shell comments.
    """
    names = {row.name for row in own}
    safe = (replace(row, show=_inert(row.show), change=_inert(row.change)) for row in own)
    return Catalogue((*safe, *(row for row in builtin().rows if row.name not in names))) if own else builtin()


def _inert(commands: Iterable[str]) -> tuple[str, ...]:
    lines = map(one_line, commands)
    return tuple(line if _LOOKS.fullmatch(line) and _PLAIN.fullmatch(line) else f"# {line}" for line in lines)


def rows_of(document: object, where: str, lines: Mapping[KeyPath, int] = MappingProxyType({})) -> list[Row]:
    """The rows of a document.

    Raises:
        ConfigError: naming the row and the key that are wrong, with the line where `lines` gives those of the keys.
    """
    listed = document.get("reasons") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ConfigError(
            f"{where} has no list 'reasons'", "write reasons: and a list of rows, as docs/reference/reasons.md shows"
        )
    if len(listed) > _MOST_ROWS:
        raise ConfigError(f"{where} has {len(listed):,} rows", f"keep the {_MOST_ROWS} that matter")
    return [_row(each, k, where, lines) for k, each in enumerate(listed)]


def _row(raw: Any, number: int, where: str, lines: Mapping[KeyPath, int]) -> Row:
    for key, problem, hint in _malformed(raw) or _wrong(raw):
        line = lines.get(("reasons", number, key), lines.get(("reasons", number), 0))
        name = f" ({raw['name']})" if isinstance(raw, dict) and isinstance(raw.get("name"), str) else ""
        raise ConfigError(f"{where}{f':{line}' * bool(line)}: reasons[{number}]{name} {problem}", hint)
    return _read(raw)


def _read(raw: Mapping[str, Any]) -> Row:
    given: dict[str, Any] = {key: raw[key] for key in _OF_TEXT if raw.get(key)}
    given |= {_PLURALS.get(key, key): _listed(raw.get(key)) for key in _OF_TEXTS}
    return Row(**given | {key: bool(raw.get(key)) for key in _FLAGS})


Problem = tuple[str, str, str]  # the key, what is wrong with it, and what to do


def _malformed(raw: Any) -> list[Problem]:
    """Keys that are missing, unknown or no texts."""
    if not isinstance(raw, dict):
        return [("", "is not a mapping", f"it needs {', '.join(_REQUIRED)}")]
    keys, needed = f"keys are: {', '.join(sorted(_KEYS))}", f"it needs {', '.join(_REQUIRED)}"
    unknown = sorted(set(map(str, raw)) - _KEYS)
    lists = [key for key in _OF_TEXTS if not all(isinstance(each, str) for each in _listed(raw.get(key)))]
    return [
        *((key, f"has an unknown key '{key}'", keys) for key in unknown),
        *((key, f"has no '{key}'", needed) for key in _REQUIRED if not raw.get(key)),
        *((key, f"has a '{key}' that is not a text of at most {MOST_CHARACTERS:,} characters", "write it in quotes")
          for key in _OF_TEXT if not isinstance(raw.get(key, ""), str) or len(raw.get(key, "")) > MOST_CHARACTERS),
        *((key, f"has a '{key}' that is neither a text nor a list of texts", "write it as [one, another]")
          for key in lists),
    ]  # fmt: skip


def _wrong(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Values that a row can't have."""
    for key, known in (("source", SOURCES), ("layer", LAYERS), ("effect", EFFECTS)):
        for strange in sorted(set(_listed(raw[key])) - set(known)):
            yield key, f"has '{strange}', which is no {key}", f"write one of {', '.join(sorted(known))}"
    if not _NAME.fullmatch(raw["name"]):
        yield "name", "has a 'name' that is not in kebab-case", "write it as untolerated-taint"
    pattern, sources = raw.get("pattern", ""), set(_listed(raw["source"]))
    if not pattern and not (raw.get("reason") and sources <= WITH_REASON):
        yield "pattern", "has neither a pattern nor a reason that decides alone", "give it a pattern"
    try:
        _compiled(pattern)
    except re2.error as error:
        yield "pattern", f"has a 'pattern' that is not a regular expression: {error}", "write RE2 syntax"


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else () if value is None else (value,)
