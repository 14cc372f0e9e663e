"""A spec under construction: the fields found so far, and the helper fields that they share."""

import re
from dataclasses import dataclass, field
from typing import Any

Definition = dict[str, Any]

# Helper fields of training scenarios, added when a guess refers to them.
VOCABULARY: dict[str, Definition] = {
    "region": {"choice": {"eu-central": 4, "eu-west": 3, "us-east": 2, "ap-south": 1}},
    "plant": {"choice": {"augsburg": 5, "graz": 4, "linz": 3, "porto": 2, "dayton": 1, "pune": 1}},
    "sensor_type": {"choice": {"temperature": 4, "vibration": 3, "pressure": 2, "flow": 1}},
    "sensor": {"template": "{sensor_type}-{sensor_number:04d}"},
    "sensor_number": {"zipf": 500, "exponent": 0.9},
    "date": {"datetime": ["2025-01-01", "2025-12-31"]},
}
_NEEDS = {"sensor": ("sensor_type", "sensor_number")}


@dataclass(slots=True)
class Draft:
    """`columns` in the order of the file, hidden `helpers`, names that are `reserved`, and `notes` for the user."""

    columns: dict[str, Definition] = field(default_factory=dict)
    helpers: dict[str, Definition] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    reserved: frozenset[str] = frozenset()

    def word(self, name: str) -> str:
        """The name of the helper for a word of the shared vocabulary, which is added if necessary."""
        taken = f"{name}_" if name in self.reserved else name
        if taken not in self.helpers:
            for needed in _NEEDS.get(name, ()):
                self.word(needed)
            definition = dict(VOCABULARY[name])
            if name == "sensor":
                parts = {need: self.word(need) for need in _NEEDS["sensor"]}
                definition = {"template": f"{{{parts['sensor_type']}}}-{{{parts['sensor_number']}:04d}}"}
            self.helpers[taken] = {**definition, "hidden": True}
        return taken

    def helper(self, base: str, definition: Definition) -> str:
        """Add a hidden field for a part of the column `base`, and return its name."""
        base = re.sub(r"\W|^(?=\d)", "_", base)  # templates and formulas refer to it
        number = 1
        while f"{base}_{number}" in self.helpers or f"{base}_{number}" in self.reserved:
            number += 1
        self.helpers[f"{base}_{number}"] = {**definition, "hidden": True}
        return f"{base}_{number}"

    def document(self) -> dict[str, Any]:
        """The spec as plain values."""
        return {"version": 1, "fields": {**self.columns, **self.helpers}}


def neat(value: float, digits: int = 6) -> float:
    """A number rounded to `digits` significant digits, for specs that people read."""
    return float(f"{value:.{digits}g}")
