"""Before the first arrival: options, scenarios and pipeline are read and checked as far as that can be done here."""

import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness.drive import processes
from harness.drive.options import Settings
from harness.model.errors import ConfigError
from harness.model.scenario import Scenario
from harness.model.slo import parse_slo
from harness.store.folder import PIPELINE, SCENARIOS
from harness.targets.scenarios import Input, ParamMode, read_scenarios
from harness.targets.target import Platform, Prepared

_MOST_GENERATED = 100_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A test's configuration, checked as far as it can be without the platform."""

    settings: Settings
    target: str
    prepared: Prepared
    scenarios: tuple[Scenario, ...] | None  # none: the inputs are not known yet, or they are to be generated


def check(settings: Settings, target: str, platform: Platform) -> Checked:
    """Read and check everything that lies on this machine.

    Raises:
        ConfigError: it can't work; nothing has been started or written.
    """
    for objective in settings.slos:
        parse_slo(objective)
    prepared = platform.prepare(settings.texts, simulated=not settings.host)
    given = settings.text("scenarios")
    scenarios = None
    if given and prepared.inputs is not None:
        scenarios = tuple(_read(settings, prepared.inputs))
    elif given and not Path(given).is_file():
        raise ConfigError(f"there is no scenario file {given}", f"generate-scenarios --n 100 -o {given} makes one")
    ParamMode.parse(settings.text("param-mode"))
    return Checked(settings, target, prepared, scenarios)


def scenarios_for(checked: Checked, inputs: tuple[Input, ...]) -> tuple[list[Scenario], bytes]:
    """The scenarios and the bytes of their CSV: given, or generated from the pipeline's inputs.

    Raises:
        ConfigError: they don't fit the inputs, or there is nothing to generate them from.
    """
    settings = checked.settings
    given = settings.text("scenarios")
    if given:
        return list(checked.scenarios or _read(settings, inputs)), Path(given).read_bytes()
    package = checked.prepared.package
    if package is None:
        raise ConfigError("there are no scenarios", "give --scenarios FILE with a column for each parameter")
    count = min(settings.arrivals(), _MOST_GENERATED)
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
        pipeline, out = Path(place) / PIPELINE, Path(place) / SCENARIOS
        pipeline.write_bytes(package)
        processes.generate_scenarios(checked.prepared.inferred_with, pipeline, max(count, 1), settings.seed, out)
        return read_scenarios(out, inputs, ParamMode()), out.read_bytes()


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": sys.version.split()[0]}
    for name in ("pipeswarm", "locust", "gevent", "geventhttpclient", "kubernetes"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _read(settings: Settings, inputs: tuple[Input, ...]) -> list[Scenario]:
    return read_scenarios(Path(settings.text("scenarios")), inputs, ParamMode.parse(settings.text("param-mode")))
