"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 560 tests of seed 31415
    "adapter-errors": 0.95,
    "adapter-slow": 2.36,
    "controller-requeue": 1.59,
    "image-missing": 0.58,
    "image-pull": 0.20,
    "lb-imbalance": 1.31,
    "nodes-exhausted": -0.19,
    "runtime-saturated": 0.96,
    "store-slow": 0.41,
    "stranded-capacity": 0.23,
}
