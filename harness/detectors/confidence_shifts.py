"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 560 tests of seed 90125
    "adapter-errors": 1.04,
    "adapter-slow": 2.19,
    "controller-backlog": -0.34,
    "controller-requeue": 1.28,
    "image-pull": 1.27,
    "lb-imbalance": 0.48,
    "node-pressure": 0.61,
    "nodes-exhausted": -0.58,
    "runtime-saturated": 0.87,
    "store-slow": 0.76,
    "stranded-capacity": -0.32,
}
