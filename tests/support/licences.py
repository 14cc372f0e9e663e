"""docs/licences.md: the packages that users get, with their licences, from the packages' own metadata."""

import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/licences.md"
DEVELOPERS = {"dev", "mutants"}  # extras that users don't install
_HEAD = """# Licences

What `pip install pipeswarm` installs, directly and indirectly, and under which licence, as the packages declare it.
None of them is copied into this project. Written by `make licences`; pytest comes with locust.

| package | licence |
|---|---|
"""
_SAME = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# What the text of a licence says, where a package declares nothing else.
_WORDS = {
    "Mozilla Public License Version 2.0": "MPL-2.0",
    "Permission is hereby granted, free of charge": "MIT",
    "Neither the name of the copyright holder": "BSD-3-Clause",
}


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(f"| {name} | {licence(name)} |\n" for name in sorted(installed()))


def project() -> dict[str, Any]:
    """The table ``project`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def required() -> list[str]:
    """What the project requires itself, with its extras for users."""
    extras = project()["optional-dependencies"].items()
    return [*project()["dependencies"], *(line for name, lines in extras if name not in DEVELOPERS for line in lines)]


def installed() -> set[str]:
    """The names of all packages of a user's installation, as far as this platform needs them."""
    pending, found = required(), set()
    while pending:
        requirement = Requirement(pending.pop())
        name = plain(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        try:
            needs = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.add(name)
        pending += needs
    return found


def plain(name: str) -> str:
    """A package's name as indexes write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(name: str) -> str:
    """A package's licence as it declares it."""
    package = distribution(name)
    metadata = package.metadata
    classified = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or () if text[:7] == "License"]
    # By `get`: where importlib_metadata is imported, too, its `[]` raises what the standard library's answers with None.
    declared = metadata.get("License-Expression"), ", ".join(classified), metadata.get("License")
    text = next(filter(None, declared), None) or _first_file(package)
    if "\n" in text:
        known = [licence for words, licence in _WORDS.items() if words in " ".join(text.split())]
        return known[0] if known else text.splitlines()[0]
    return _SAME.get(text, text)


def _first_file(package: Distribution) -> str:
    names = package.metadata.get_all("License-File") or ["UNKNOWN"]
    return next((file.read_text() for file in package.files or () if file.name == names[0]), "UNKNOWN")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}: {len(installed())} packages\n")
