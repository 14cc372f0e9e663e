"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 560 tests of seed 90125
    # 240 tests of seed 742061
    # 240 tests of seed 550913
    # 240 tests of seed 271828
    "adapter-errors": 1.38,
    "adapter-slow": 2.58,
    "api-errors": 0.88,
    "autoscaler-at-max": 0.24,
    "autoscaler-slow": -0.46,
    "controller-backlog": 0.62,
    "controller-requeue": 1.21,
    "cpu-starved": 0.87,
    "db-connections": 0.66,
    "db-full": 0.71,
    "driver-overhead": 0.50,
    "image-missing": 0.79,
    "image-pull": 0.27,
    "lb-imbalance": 0.59,
    "node-pressure": 0.89,
    "nodes-exhausted": -0.03,
    "quota": 0.80,
    "runtime-saturated": 1.12,
    "slow-worker": 1.04,
    "store-full": 0.51,
    "store-slow": 0.41,
    "store-unreachable-from-old-nodes": 1.59,
    "stranded-capacity": -0.21,
}
