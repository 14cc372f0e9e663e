"""Installs Pipeswarm, every file checked by its hash: python deploy/install.py [--editable] [EXTRA,…].

The hashes are those of constraints.txt. pip checks them from 26.1 on, and refuses folders with them: so a pip of
known hash comes first, then what pyproject.toml asks for, and Pipeswarm itself last.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"


def wanted(project: dict[str, Any], extras: Iterable[str]) -> Iterator[str]:
    """What the project and its extras ask for; an extra may name others."""
    yield from project["dependencies"]
    pending = list(extras)
    while pending:
        for line in project["optional-dependencies"][pending.pop()]:
            if others := re.fullmatch(rf"{project['name']}\[(.*)\]", line):
                pending += others[1].split(",")
            else:
                yield line


def pip(*arguments: str) -> None:
    """Run pip in this environment; end if it fails."""
    command = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *arguments)
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)


def main() -> None:
    """Install pip, the dependencies, and Pipeswarm."""
    given = sys.argv[1:]
    editable = ["--editable"] if "--editable" in given else []
    extras = [each for word in given if not word.startswith("-") for each in word.split(",") if each]
    own = re.search(r"(?m)^pip==.*(?:\n +--hash=.*)+", CONSTRAINTS.read_text())[0]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as installer:
        installer.write(own.rstrip("\\ \n") + "\n")
        installer.flush()
        pip("--require-hashes", "--requirement", installer.name)
    pip(
        "--constraint",
        str(CONSTRAINTS),
        *wanted(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"], extras),
    )
    pip("--no-deps", "--build-constraint", str(CONSTRAINTS), *editable, str(ROOT))


if __name__ == "__main__":
    main()
