"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 560 tests of seed 90125, 240 tests of seed 742061, 240 tests of seed 550913
    "adapter-errors": 1.31,
    "adapter-slow": 2.42,
    "autoscaler-at-max": 0.53,
    "autoscaler-slow": -0.56,
    "controller-backlog": 0.61,
    "controller-requeue": 1.33,
    "cpu-starved": 0.79,
    "db-connections": 0.61,
    "db-full": 0.58,
    "driver-overhead": 0.95,
    "image-missing": 0.69,
    "image-pull": 1.04,
    "lb-imbalance": 0.68,
    "node-pressure": 0.79,
    "nodes-exhausted": -0.21,
    "quota": 0.74,
    "runtime-saturated": 1.00,
    "slow-worker": 0.96,
    "store-slow": 0.92,
    "store-unreachable-from-old-nodes": 1.38,
    "stranded-capacity": -0.47,
}
