"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 240 tests of seed 31415
    "adapter-errors": 0.53,
    "adapter-slow": 1.58,
    "controller-requeue": 0.72,
    "image-pull": -0.50,
    "lb-imbalance": 1.40,
    "nodes-exhausted": -0.07,
    "runtime-saturated": 0.72,
    "store-slow": 0.41,
    "stranded-capacity": 0.27,
}
