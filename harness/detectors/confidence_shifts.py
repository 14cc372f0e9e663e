"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 480 tests of seed 660080
    # 480 tests of seed 660081
    # 480 tests of seed 660082
    # 480 tests of seed 660083
    # 480 tests of seed 660084
    "adapter-errors": 1.78,
    "adapter-slow": 3.13,
    "api-errors": 1.50,
    "autoscaler-at-max": -0.20,
    "autoscaler-slow": 0.17,
    "controller-backlog": 0.75,
    "controller-requeue": 0.82,
    "cpu-starved": 0.73,
    "db-connections": 1.12,
    "db-full": 0.95,
    "driver-overhead": 0.96,
    "image-missing": 0.98,
    "image-pull": 0.13,
    "lb-imbalance": 1.01,
    "node-pressure": 1.09,
    "nodes-exhausted": 0.17,
    "oom": 0.98,
    "parallelism-cap": 1.03,
    "quota": 1.22,
    "runtime-saturated": 1.18,
    "slow-worker": 1.35,
    "store-full": 0.16,
    "store-slow": 0.27,
    "store-unreachable-from-old-nodes": 2.07,
    "stranded-capacity": 0.31,
}
