"""The software bill of materials of a user's installation, as CycloneDX 1.6 (JSON): make sbom.

It lists what is installed here of what `pip install pipeswarm` with its extras brings, with versions, licences and the
dependencies between the packages: https://cyclonedx.org/docs/1.6/json
"""

import json
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from tests.support.licences import installed, licence, plain, project, required


def document() -> dict[str, Any]:
    """The whole document; the same installation gives the same one."""
    names = sorted(installed())
    refs = {name: f"pkg:pypi/{name}@{distribution(name).version}" for name in names}
    version, terms = project()["version"], project()["license"]
    own = f"pkg:pypi/pipeswarm@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "metadata": {"component": {**_component("pipeswarm", version, own, terms), "type": "application"}},
        "components": [_component(name, distribution(name).version, refs[name], licence(name)) for name in names],
        "dependencies": [
            {"ref": own, "dependsOn": _needed(required(), refs)},
            *({"ref": refs[name], "dependsOn": _needed(distribution(name).requires or (), refs)} for name in names),
        ],
    }


def _component(name: str, version: str, ref: str, terms: str) -> dict[str, Any]:
    return {
        "type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref,
        "licenses": [{"license": {"name": terms}}],
    }  # fmt: skip


def _needed(lines: Iterable[str], refs: dict[str, str]) -> list[str]:
    wanted = [Requirement(line) for line in lines]
    return sorted({
        refs[plain(each.name)] for each in wanted
        if plain(each.name) in refs and (not each.marker or each.marker.evaluate({"extra": ""}))
    })  # fmt: skip


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
