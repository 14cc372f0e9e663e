"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 50 tests of seed 103
    "image-pull": -0.07,
}
