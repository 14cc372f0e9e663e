"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 560 tests of seed 90125
    # 240 tests of seed 742061
    # 240 tests of seed 550913
    # 240 tests of seed 271828
    # 480 tests of seed 660078
    "adapter-errors": 1.52,
    "adapter-slow": 2.64,
    "api-errors": 1.18,
    "autoscaler-at-max": -0.25,
    "autoscaler-slow": -0.68,
    "controller-backlog": 0.50,
    "controller-requeue": 1.44,
    "cpu-starved": 0.58,
    "db-connections": 0.85,
    "db-full": 0.83,
    "driver-overhead": 0.66,
    "image-missing": 0.91,
    "image-pull": 0.48,
    "lb-imbalance": 0.98,
    "node-pressure": 1.02,
    "nodes-exhausted": 0.39,
    "oom": 0.90,
    "quota": 0.95,
    "runtime-saturated": 1.14,
    "slow-worker": 1.15,
    "store-full": 0.33,
    "store-slow": 0.24,
    "store-unreachable-from-old-nodes": 1.88,
    "stranded-capacity": -0.02,
}
