"""Reads profiles: YAML checked against `harness.simulator.profile.settings`; errors name line and key."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import yaml

from harness import reading
from harness.model.errors import ConfigError, suggestion
from harness.simulator.engine.distributions import FORMS, Amount, parse_amount
from harness.simulator.profile.bounds import OneOf, Range, Scalar
from harness.simulator.profile.checks import problem
from harness.simulator.profile.prices import PriceSeries, parse_prices
from harness.simulator.profile.settings import Profile

_BUILT_IN = files("harness.simulator.profile") / "built_in"


def built_in() -> dict[str, str]:
    """Names and titles of the built-in profiles."""
    titles = {}
    for entry in sorted(_BUILT_IN.iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".yaml"):
            document = yaml.load(entry.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)  # safe C loader
            titles[entry.name.removesuffix(".yaml")] = str(document.get("title", ""))
    return titles


def load_profile(name: str) -> Profile:
    """The built-in profile of that name, or the one in the YAML file at that path.

    Raises:
        ConfigError: unknown or invalid profile; the message says where.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or "/" in name:
        try:
            return parse_profile(reading.read_text(path), name, path.stem)
        except OSError as error:
            raise ConfigError(
                f"the profile {name} can't be read: {error.strerror}", "give the path of a YAML file"
            ) from error
    try:
        text = (_BUILT_IN / f"{name}.yaml").read_text(encoding="utf-8")
    except OSError:
        names = list(built_in())
        raise ConfigError(
            f"there is no simulated platform '{name}'",
            f"{suggestion(name, names)}built-in profiles: {', '.join(names)}; or give the path of a YAML file",
        ) from None
    return parse_profile(text, f"{name}.yaml", name)


def parse_profile(text: str, where: str, name: str) -> Profile:
    """A profile from YAML; `where` names the file in errors, `name` is the profile's name unless the file sets one.

    Raises:
        ConfigError: not YAML, an unknown key, or an invalid value.
    """
    reading.check_yaml(text, where)
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise reading.not_yaml(error, where) from error
    if node is None:
        return Profile(name=name)
    reader = _Reader(where)
    profile = cast("Profile", reader.dataclass(Profile, node, "", {"name": name}))
    if found := problem(profile):
        raise reader.error(_at(node, found.key), *found)
    return profile


def _at(node: yaml.Node, key: str) -> yaml.Node:
    """The node of a key such as ``pools[1].max``; where it is not written, the last one above it that is."""
    for name in key.replace("[", ".").replace("]", "").split("."):
        if isinstance(node, yaml.SequenceNode):
            node = node.value[int(name)]
            continue
        below = [value for written, value in node.value if written.value == name]
        if not below:
            break
        node = below[0]
    return node


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


class _Reader:
    """Turns YAML nodes into dataclasses; errors name the line."""

    def __init__(self, where: str) -> None:
        self._where = where

    def error(self, node: yaml.Node, key: str, message: str, hint: str) -> ConfigError:
        """The error about what a node says."""
        at = f"{self._where}:{node.start_mark.line + 1}"
        return ConfigError(f"{at}: {key or 'the profile'}: {message}", hint)

    def dataclass(self, cls: type, node: yaml.Node, key: str, given: Mapping[str, object] | None = None) -> object:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, key, "is not a mapping", f"keys: {', '.join(f.name for f in fields(cls))}")
        known: dict[str, Field[Any]] = {f.name: f for f in fields(cls)}
        values: dict[str, object] = dict(given or {})
        for key_node, value_node in node.value:
            name = str(key_node.value)
            if name not in known:
                hint = f"{suggestion(name, known)}keys: {', '.join(known)}"
                raise self.error(key_node, _join(key, name), "unknown key", hint)
            values[name] = self._value(_hints(cls)[name], value_node, _join(key, name))
        for f in known.values():
            if f.name not in values and f.default is MISSING and f.default_factory is MISSING:
                raise self.error(node, _join(key, f.name), "is missing", "add it")
        return cls(**values)

    def _value(self, hint: Any, node: yaml.Node, key: str) -> object:
        origin, args = get_origin(hint), get_args(hint)
        if hint is PriceSeries:
            return self._prices(node, key)
        if origin is Annotated:
            return self._annotated(args[0], args[1:], node, key)
        if origin in {Union, types.UnionType}:
            if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
                return None
            if hint == Scalar and isinstance(node, yaml.ScalarNode):
                return self._plain(node)
            return self._value(next(each for each in args if each is not types.NoneType), node, key)
        if origin is not None:
            return self._several(origin, args, node, key)
        return self.dataclass(cast("type", hint), node, key) if is_dataclass(hint) else self._scalar(hint, node, key)

    def _annotated(self, kind: type, more: tuple[Any, ...], node: yaml.Node, key: str) -> object:
        """A value with a unit, with bounds, or both."""
        parsers = [each for each in more if callable(each)]
        value = self._measured(kind, parsers[0], node, key) if parsers else self._scalar(kind, node, key)
        for bounds in more:
            if isinstance(bounds, Range | OneOf) and not bounds.allows(value):
                raise self.error(node, key, f"{self._plain(node)} is not {bounds}", f"give {bounds}")
        return value

    def _several(self, origin: type, args: tuple[Any, ...], node: yaml.Node, key: str) -> object:
        """A list, or a mapping with values of one type."""
        if issubclass(origin, tuple):
            if not isinstance(node, yaml.SequenceNode):
                raise self.error(node, key, "is not a list", "write one entry per line, each starting with '-'")
            return tuple(self._value(args[0], each, f"{key}[{index}]") for index, each in enumerate(node.value))
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, key, "is not a mapping", "write it as key: value")
        return {str(k.value): self._value(args[1], v, _join(key, str(k.value))) for k, v in node.value}

    def _measured(self, kind: type, number: Callable[[str | float], float], node: yaml.Node, key: str) -> object:
        plain = self._plain(node)
        try:
            if kind is Amount:
                return parse_amount(plain, number)
            value = number(_number(plain))
        except ConfigError as error:
            raise self.error(node, key, error.message, error.hint) from error
        except (ValueError, TypeError) as error:
            raise self.error(
                node, key, str(error), FORMS if kind is Amount else "write a number with a unit"
            ) from error
        if value < 0:
            raise self.error(node, key, f"{plain} is below 0", "give 0 or more")
        return value

    def _prices(self, node: yaml.Node, key: str) -> PriceSeries:
        """From the CSV file that the value names, beside the profile."""
        path = Path(self._where).parent / str(self._plain(node))
        try:
            return parse_prices(reading.read_text(path), str(path))
        except OSError as error:
            hint = "give the path of a CSV file, from the profile's folder"
            raise self.error(node, key, f"{path} can't be read: {error.strerror}", hint) from error

    def _scalar(self, kind: type, node: yaml.Node, key: str) -> object:
        plain = self._plain(node)
        if issubclass(kind, StrEnum):
            try:
                return kind(str(plain))
            except ValueError:
                raise self.error(
                    node, key, f"{plain!r} is not a valid value", f"give one of: {', '.join(kind)}"
                ) from None
        if kind is str and isinstance(plain, str | int | float) and not isinstance(plain, bool):
            return str(plain)
        if kind is bool and isinstance(plain, bool):
            return plain
        if kind in {int, float} and isinstance(plain, int | float) and not isinstance(plain, bool):
            if plain < 0:
                raise self.error(node, key, f"{plain} is below 0", "give 0 or more")
            if (kind is float and isfinite(plain)) or isinstance(plain, int):
                return kind(plain)
        wanted = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise self.error(node, key, f"{plain!r} is not {wanted}", f"give {wanted}")

    @staticmethod
    def _plain(node: yaml.Node) -> object:
        loader = yaml.SafeLoader("")
        return loader.construct_object(node, deep=True)


def _number(plain: object) -> str | int | float:
    """Refuse values that a unit's parser cannot read."""
    if isinstance(plain, bool) or not isinstance(plain, str | int | float):
        raise ValueError(f"{plain!r} is not a number")  # noqa: TRY004  # the document is wrong, not the call
    return plain


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
