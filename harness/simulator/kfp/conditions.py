"""Conditions of a compiled pipeline: the part of CEL that KFP's compiler writes for ``dsl.If``, ``Elif`` and ``Else``.

``inputs.parameter_values['x'] == 'y'``, the other comparisons, ``int(…)``, ``double(…)``, ``string(…)``, ``bool(…)``,
``!``, ``&&``, ``||`` and parentheses (https://github.com/google/cel-spec). A comparison with an unknown value
is drawn at random: within a run, the same comparison of the same value always has the same outcome, so that exactly
one branch of an ``If``/``Elif``/``Else`` is taken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.simulator.engine.expressions import parsed

_PARAMETERS = "inputs.parameter_values."
Read = Callable[["Source"], object]  # the value; raises LookupError if it is unknown
Draw = Callable[[object], bool]  # a random outcome for this key


class Known(NamedTuple):
    """A constant in the pipeline."""

    value: object


class Given(NamedTuple):
    """A parameter of the run."""

    name: str


class Computed(NamedTuple):
    """An output of a step: the step's index in the graph, and the output's name."""

    step: int
    name: str


Source = Known | Given | Computed


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a task; `names` are the sources of its parameters."""

    text: str
    names: Mapping[str, Source]

    def holds(self, read: Read, draw: Draw) -> bool:
        """Whether the task runs; an expression that cannot be parsed is drawn as a whole."""
        try:
            return bool(parsed(self.text)(_Reading(self.names, read, draw)))
        except (LookupError, TypeError, ValueError):
            return draw((self.text, tuple(self.names.values())))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the names in a condition stand for; see `harness.simulator.engine.expressions.Scope`."""

    names: Mapping[str, Source]
    read: Read
    draw: Draw

    def value(self, path: str) -> object:
        return self.read(self.names[path.removeprefix(_PARAMETERS)])

    def unsettled(self, comparison: str) -> bool:
        # The sources distinguish equal names in different pipelines.
        named = (source for name, source in sorted(self.names.items()) if f"'{name}'" in comparison)
        return self.draw((comparison, tuple(named)))
