"""What a change of a platform or of its load would bring, predicted from a recorded test."""

from harness.planning.what_if.changes import parse_change, parse_sweep
from harness.planning.what_if.effects import expected_effects
from harness.planning.what_if.fixes import fixes_of
from harness.planning.what_if.prediction import RANKS, WhatIf, predict, ranked
from harness.planning.what_if.scenario import Change, Scenario

__all__ = [
    "RANKS", "Change", "Scenario", "WhatIf", "expected_effects", "fixes_of", "parse_change", "parse_sweep", "predict",
    "ranked",
]  # fmt: skip
