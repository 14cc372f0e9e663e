"""From a recorded test to a simulated platform that behaves as the recorded one did."""

from harness.planning.identify.identification import Identified, identify
from harness.planning.identify.recorded import RecordedTest, measures_of, recorded_test, simulable
from harness.planning.identify.replay import replay
from harness.planning.identify.reproduction import Measures, Reproduction, compare
from harness.planning.identify.setting import Setting

__all__ = [
    "Identified", "Measures", "RecordedTest", "Reproduction", "Setting", "compare", "identify", "measures_of",
    "recorded_test", "replay", "simulable",
]  # fmt: skip
