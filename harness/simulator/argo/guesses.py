"""What only a real platform knows: what containers write, and how long that takes which has no pod.

A value is drawn so that each branch that asks for it is as likely: of the texts that conditions compare it with, or a
list where a loop runs over it. The profile's steps can say more (``results``, by the output's name).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any
from zlib import crc32

from harness.simulator.argo.fields import is_loop
from harness.simulator.argo.nodes import Node, Run
from harness.simulator.argo.templates import Spec, calls_of, key_of
from harness.simulator.engine.distributions import Draws
from harness.simulator.profile.results import ANY_OTHER
from harness.simulator.workflows.steps import Steps

_INDEX = re.compile(r"\[\s*['\"]([\w-]+)['\"]\s*\]")
_OPERATOR = r"\s*\)?\s*(==|!=|=~|<=|>=|<|>)\s*"
_LITERAL = r"('[^']*'|\"[^\"]*\"|[\w./%+-]+)"
_FIELD = re.compile(r"\bitem\.([\w-]+)")
_NO_LITERAL = ("inputs.", "steps.", "tasks.", "workflow.", "item.")
_FAR = ("0", "1000000")  # below and above whatever a number is compared with
_OTHER = "other"


@dataclass(slots=True)
class Use:
    """What a workflow does with a value: the texts that it may be; of a list, or of one of its items, the fields."""

    texts: dict[str, None] = field(default_factory=dict)
    is_list: bool = False
    is_item: bool = False
    fields: dict[str, dict[str, None]] = field(default_factory=dict)

    def draw(self, random: Random, items: int) -> str:
        """One value."""
        if self.is_list:
            return json.dumps([self._item(k, random) for k in range(items)])
        if self.is_item and self.fields:
            return json.dumps(self._item(random.randint(1, 9), random))
        return _one_of(self.texts, random) if self.texts else str(random.randint(1, 9))

    def _item(self, number: int, random: Random) -> object:
        named = {name: _one_of(texts, random) if texts else str(number) for name, texts in self.fields.items()}
        return named or number


def _one_of(texts: Mapping[str, None], random: Random) -> str:
    return random.choice([*texts, _OTHER] if len(texts) == 1 else [*texts])


class Uses:
    """Of all outputs in a workflow's templates."""

    def __init__(self, templates: Mapping[str, Spec]) -> None:
        self._templates = templates
        self._known: dict[tuple[str, str], Use] = {}

    def of(self, template: str, output: str) -> Use:
        """Of an output (``result`` or ``parameters.NAME``) of the template with this key."""
        known = self._known.get((template, output))
        if known is None:
            known = self._known[template, output] = Use()
            self._follow_output(template, output, known, set())
        return known

    def _follow_output(self, template: str, output: str, use: Use, seen: set[tuple[str, str]]) -> None:
        for caller, its in self._templates.items():
            for call in calls_of(its):
                if "name" in call and key_of(call, caller) == template:
                    where = rf"(?:steps|tasks)\.{re.escape(str(call['name']))}\.outputs\.{re.escape(output)}"
                    self._follow(caller, where, use, seen, together=is_loop(call))
                    if output.startswith("parameters."):
                        where = rf"item\.{re.escape(output.removeprefix('parameters.'))}"
                        self._compare(its, where, use.texts)

    def _follow(
        self, template: str, where: str, use: Use, seen: set[tuple[str, str]], *, together: bool = False
    ) -> None:
        """Where a template reads a value: in conditions, loops, arguments and its own outputs.

        `together` is whether it reads the values of all items of a loop.
        """
        its = self._templates.get(template)
        if its is None or (template, where) in seen:
            return
        seen.add((template, where))
        named = re.compile(rf"{where}(?![\w-])")
        self._compare(its, where, use.texts)
        for call in calls_of(its):
            if named.search(_normal(call.get("withParam"))):
                use.is_item, use.is_list = use.is_item or together, use.is_list or not together
                for name in _FIELD.findall(_normal(json.dumps(call, default=str))):
                    self._compare(its, rf"item\.{re.escape(name)}", use.fields.setdefault(name, {}))
            for given in (call.get("arguments") or {}).get("parameters") or ():
                if named.search(_normal(given.get("value"))):
                    self._follow(
                        key_of(call, template),
                        rf"inputs\.parameters\.{re.escape(given['name'])}",
                        use,
                        seen,
                        together=together,
                    )
        for output in (its.get("outputs") or {}).get("parameters") or ():
            if named.search(_normal(output.get("valueFrom"))):
                self._follow_output(template, f"parameters.{output['name']}", use, seen)

    def _compare(self, template: Spec, where: str, texts: dict[str, None]) -> None:
        """Collect the texts on the other side of comparisons."""
        after, before = _comparisons(where)
        for text in _conditions(template):
            found = [(each[1], each[2]) for each in after.finditer(text)]
            for sign, literal in (*found, *((each[2], each[1]) for each in before.finditer(text))):
                texts |= dict.fromkeys(_sides(sign, literal))


@lru_cache(1024)
def _comparisons(where: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(rf"{where}{_OPERATOR}{_LITERAL}"), re.compile(rf"{_LITERAL}\s*(==|!=)\s*{where}(?![\w-])")


def _sides(sign: str, literal: str) -> Iterator[str]:
    """The texts for which a comparison has one outcome or the other, except where any other text is the other side."""
    text = literal.strip("'\"")
    if literal[0] not in "'\"" and text.startswith(_NO_LITERAL):
        yield from _FAR if sign in {"<", ">", "<=", ">="} else ()
    elif sign in {"<", ">", "<=", ">="}:
        try:
            yield from (f"{float(text) - 1:g}", f"{float(text) + 1:g}")
        except ValueError:
            yield from _FAR
    else:
        yield text


def _conditions(template: Spec) -> Iterator[str]:
    for call in calls_of(template):
        yield from map(_normal, (call.get("when"), call.get("expression")))
    for output in (template.get("outputs") or {}).get("parameters") or ():
        yield _normal((output.get("valueFrom") or {}).get("expression"))
    yield _normal((template.get("retryStrategy") or {}).get("expression"))


def _normal(text: Any) -> str:
    """A text without braces, and with dots in place of brackets."""
    return _INDEX.sub(r".\1", str(text or "").replace("{{=", "").replace("{{", "").replace("}}", ""))


class Guesses:
    """Draws outputs and durations.

    Args:
        steps: the profile's, by task name.
        draws: of values and durations.
        items: of a list that a loop runs over.
    """

    def __init__(self, steps: Steps, draws: Draws, items: int) -> None:
        self._steps = steps
        self._draws = draws
        self._items = items
        self._uses: dict[tuple[int, ...], tuple[list[Spec], Uses]] = {}  # the templates are kept: ids are reused

    def output(self, run: Run, node: Node, output: str) -> str:
        """What a node writes as its ``result``, or as ``parameters.NAME``."""
        random = self._draws.of(run.number, crc32(f"{node.name.removeprefix(run.name)}/{output}".encode()), 0)
        given = self._steps.model(node.task).results.get(output.removeprefix("parameters."))
        if given and (value := str(random.choice(given))) != ANY_OTHER:
            return value
        key = tuple(map(id, run.templates.values()))
        if key not in self._uses:
            self._uses[key] = list(run.templates.values()), Uses(run.templates)
        use = self._uses[key][1].of(node.template, output)
        if given:
            others = {text: None for text in use.texts if text not in map(str, given)}
            use = replace(use, texts=others or {_OTHER: None})
        return use.draw(random, self._items)

    def holds(self, run: Run, name: str) -> bool:
        """Whether a condition that only a real platform can evaluate is true, for the node of this name."""
        return self._draws.of(run.number, crc32(f"{name.removeprefix(run.name)}/when".encode()), 0).random() < 0.5

    def takes_s(self, run: Run, node: Node) -> float:
        """How long a node without a pod takes."""
        random = self._draws.of(run.number, crc32(node.name.removeprefix(run.name).encode()), 1)
        return self._steps.model(node.task).duration.sample(random, run.amounts)
