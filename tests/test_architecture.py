"""The picture of the layers in docs/architecture.md is the import contract that `make check` enforces."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def contract_layers():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"][0]["layers"]


def picture():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    return re.search(r"<!-- layers:.*?```text\n(.*?)```", page, re.DOTALL).group(1)


def test_the_picture_shows_the_layers_of_the_import_contract():
    shown = [re.sub(r"\s+", " ", line).strip() for line in picture().splitlines() if not line.startswith("#")]
    assert shown == [layer.replace("harness.", "") for layer in contract_layers()]


def test_every_room_of_the_contract_is_explained():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = [room.strip() for layer in contract_layers() for room in layer.split("|")]
    for room in rooms:
        assert f"| `{room.replace('.', '/')}` |" in page, room
