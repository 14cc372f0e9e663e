"""``pipeswarm init``: the files that a load test of one's own begins from."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.loading.load import CONFIG
from harness.model.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from harness.targets.target import Platform

LOCUSTFILE, SPEC, SCENARIOS = "locustfile.py", "scenarios.scenario.yaml", "scenarios.csv"
_ROWS = 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the folder and the target."""
    from harness.targets.discovery import names

    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="where to write (default: here)")
    parser.add_argument("--target", choices=names(), default="kfp", help="the platform to load (default: kfp)")


def run(arguments: argparse.Namespace) -> int:
    """Write the files and name the next commands.

    Raises:
        ConfigError: a file exists, or the folder can't be written.
    """
    from harness.targets.discovery import find

    folder, target = arguments.folder, arguments.target
    for name in (LOCUSTFILE, CONFIG, SPEC, SCENARIOS):
        if (folder / name).exists():
            raise ConfigError(f"{folder / name} exists", "give another folder: pipeswarm init FOLDER")
    platform = find(target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_scenarios = _write_scenarios(folder, platform)
        (folder / CONFIG).write_text(_config(target, platform, has_scenarios=has_scenarios), encoding="utf-8")
        (folder / LOCUSTFILE).write_text(_locustfile(target), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror}", "check its permissions") from error
    enter = "" if folder == Path() else f"  cd {folder}\n"
    regenerate = f"  generate-scenarios --spec {SPEC}    # after changes to it\n" if has_scenarios else ""
    sys.stdout.write(
        f"wrote {', '.join(path.name for path in sorted(folder.iterdir()) if path.name in _NAMES)}\n"
        f"next:\n{enter}{regenerate}"
        f"  pipeswarm load {target} -f {LOCUSTFILE}    # web UI on http://localhost:8089, or --headless\n"
    )
    return ExitCode.OK


_HOST = '# host = "https://…"  # or {}; without it the built-in simulated platform is loaded'
_NAMES = {LOCUSTFILE, CONFIG, SPEC, SCENARIOS}


def _write_scenarios(folder: Path, platform: "Platform") -> bool:
    """Write a spec for the inputs of the target's example, and scenarios; False if it has none."""
    from harness.plan.subprocesses import module
    from harness.plan.subprocesses import run as run_module

    blank = {option.name: str(option.default or "") for option in platform.OPTIONS} | {"namespace": ""}
    prepared = platform.prepare(blank, simulated=True) if platform.DEFAULTS.get("simulate") else None
    if prepared is None or prepared.package is None:
        return False
    with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
        example = Path(place) / "example"
        example.write_bytes(prepared.package)
        done = run_module([
            *module("generators"), "--n", str(_ROWS), prepared.inferred_with, str(example),
            "--write-spec", str(folder / SPEC), "-o", str(folder / SCENARIOS), "--quiet",
        ])  # fmt: skip
    if done.returncode:
        message, _, hint = done.stderr.strip().removeprefix("error: ").partition("\n  → ")
        raise ConfigError(f"scenarios can't be written: {message}", hint)
    return True


def _locustfile(target: str) -> str:
    name = "".join(part.capitalize() for part in target.replace("-", "_").split("_"))
    return (
        f'"""Load test of {target}; `pipeswarm load {target} --options` lists the options."""\n\n'
        "from pipeswarm import PipelineUser\n\n\n"
        f'class {name}Runs(PipelineUser):\n    """Runs, submitted when the schedule says."""\n\n'
        f"    platform = {json.dumps(target)}\n"
    )


def _config(target: str, platform: "Platform", *, has_scenarios: bool) -> str:
    shown = [option for option in platform.OPTIONS if option.file or not platform.HOST_VARIABLE]
    lines = [
        f"# Options of the load test; the command line wins. `pipeswarm load {target} --options` lists them all.",
        "[tool.locust]",
        *([_HOST.format(platform.HOST_VARIABLE)] if platform.HOST_VARIABLE else []),
        *(f'# {option.name} = "…"  # {option.help}' for option in shown),
        *([f'scenarios = "{SCENARIOS}"'] if has_scenarios else []),
        'schedule = "burst"',
        "runs = 30",
        'slo = ["failed_ratio < 0.05", "p95(run.duration) < 20m"]',
    ]
    return "\n".join(lines) + "\n"
