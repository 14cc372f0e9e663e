"""The compiled core computes what the Python modules do: the same folders, byte for byte."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = [
    ("demo", "--schedule", "burst", "--runs", "40", "--fault", "store-full@5s"),
    ("spot-pool", "--schedule", "poisson", "--rate", "1/s", "--for", "60s", "--seed", "3"),
    ("kfp-default-install", "--schedule", "burst", "--runs", "40", "--fault", "agent-lag"),
    ("gpu-pool", "--schedule", "burst", "--runs", "40"),
]
pytestmark = [
    pytest.mark.soak,  # a compilation takes minutes
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The packages of a compiled wheel, unpacked."""
    place = tmp_path_factory.mktemp("compiled")
    python = (sys.executable, "-m")
    subprocess.run([*python, "hatchling", "build", "-t", "sdist", "-d", place], cwd=ROOT, check=True)
    (archive,) = place.glob("*.tar.gz")
    enabled = os.environ | {"HATCH_BUILD_HOOK_ENABLE_MYPYC": "true"}
    subprocess.run([*python, "pip", "wheel", "--no-deps", "-w", place, archive], cwd=place, env=enabled, check=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(place / "packages")
    return place / "packages"


def python(packages, *arguments, cwd):
    """What Python prints, with these packages before all others."""
    environment = os.environ | {"PYTHONPATH": str(packages)}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_core_of_the_wheel_is_compiled(compiled, tmp_path):
    shown = "import harness.simulator.engine.events as module; print(module.__file__)"
    assert python(compiled, "-c", shown, cwd=tmp_path).strip().endswith(".so")


@pytest.mark.parametrize("test", TESTS, ids=[test[0] for test in TESTS])
def test_a_folder_has_the_same_bytes(compiled, tmp_path, test):
    folders = []
    for packages in (ROOT, compiled):
        place = tmp_path / packages.name
        place.mkdir()
        options = ("--run-name", "run", "--runs-dir", "runs", "--no-report")
        python(packages, "-m", "harness.cli", "simulate", "run", "--profile", *test, *options, cwd=place)
        files = sorted(path for path in (place / "runs/run").iterdir() if path.is_file())
        folders.append({path.name: path.read_bytes() for path in files})
    assert folders[0] == folders[1]
