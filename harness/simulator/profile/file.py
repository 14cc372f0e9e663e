"""Reads profiles: YAML checked against `harness.simulator.profile.settings`; errors name line and key."""

from functools import partial
from importlib.resources import files
from pathlib import Path

from harness import documents, reading
from harness.model.errors import ConfigError, suggestion
from harness.simulator.profile.checks import problem
from harness.simulator.profile.prices import PriceSeries, parse_prices
from harness.simulator.profile.settings import Profile

_BUILT_IN = files("harness.simulator.profile") / "built_in"


def built_in() -> dict[str, str]:
    """Names and titles of the built-in profiles."""
    titles = {}
    for entry in sorted(_BUILT_IN.iterdir(), key=lambda path: path.name):
        if entry.name.endswith(".yaml"):
            (document,) = reading.parse_yaml(entry.read_text(encoding="utf-8"), entry.name)
            titles[entry.name.removesuffix(".yaml")] = str(document.get("title", ""))
    return titles


def load_profile(name: str) -> Profile:
    """The built-in profile of that name, or the one in the YAML file at that path.

    Raises:
        ConfigError: unknown or invalid profile; the message says where.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or "/" in name:
        with reading.readable(f"the profile {name}", "give the path of a YAML file"):
            return parse_profile(reading.read_text(path), name, path.stem)
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
    document = documents.parse_yaml(text, where, Path(where).parent)
    if document.data is None:
        return Profile(name=name)
    if isinstance(document.data, dict):
        document.data.setdefault("name", name)
    profile = document.typed(Profile, {PriceSeries: partial(_prices, document.folder)})
    if found := problem(profile):
        keys = found.key.replace("[", ".").replace("]", "").split(".")
        raise document.error(tuple(int(key) if key.isdecimal() else key for key in keys), found.message, found.hint)
    return profile


def _prices(folder: Path, name: object) -> PriceSeries:
    """From the CSV file of this name."""
    path = folder / str(name)
    with reading.readable(path, "give the path of a CSV file, from the profile's folder"):
        return parse_prices(reading.read_text(path), str(path))
