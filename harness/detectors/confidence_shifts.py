"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 1440 tests of seed 660086
    # 960 tests of seed 660087
    # 960 tests of seed 660088
    # 960 tests of seed 660089
    "adapter-errors": 2.23,
    "adapter-slow": 3.17,
    "api-errors": 1.79,
    "autoscaler-at-max": -0.63,
    "autoscaler-slow": -0.53,
    "controller-backlog": -0.24,
    "controller-qps": 0.21,
    "controller-requeue": 0.85,
    "cpu-starved": 1.22,
    "db-connections": 1.40,
    "db-full": 1.22,
    "driver-overhead": 0.94,
    "image-missing": 1.37,
    "image-pull": 0.34,
    "lb-imbalance": 0.72,
    "node-pressure": 1.47,
    "nodes-exhausted": 0.22,
    "oom": 1.21,
    "parallelism-cap": 1.30,
    "quota": 1.52,
    "runtime-saturated": 1.09,
    "slow-worker": 1.17,
    "spot-evictions": -0.10,
    "store-full": 0.92,
    "store-slow": -0.05,
    "store-unreachable-from-old-nodes": 2.55,
    "stranded-capacity": 0.29,
}
