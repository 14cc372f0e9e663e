"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 1440 tests of seed 660086
    # 960 tests of seed 660087
    "adapter-errors": 1.80,
    "adapter-slow": 3.39,
    "api-errors": 1.44,
    "autoscaler-at-max": -0.48,
    "autoscaler-slow": -0.58,
    "controller-backlog": 0.99,
    "controller-requeue": 0.97,
    "cpu-starved": 1.05,
    "db-connections": 1.13,
    "db-full": 0.90,
    "driver-overhead": 0.71,
    "image-missing": 1.06,
    "image-pull": 0.59,
    "lb-imbalance": 0.84,
    "node-pressure": 1.14,
    "nodes-exhausted": 0.48,
    "oom": 0.88,
    "parallelism-cap": 1.01,
    "quota": 1.28,
    "runtime-saturated": 1.08,
    "slow-worker": 0.82,
    "store-full": 0.54,
    "store-slow": -0.13,
    "store-unreachable-from-old-nodes": 2.08,
    "stranded-capacity": 0.38,
}
