"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {
    # 1440 tests of seed 660086
    # 960 tests of seed 660087
    # 960 tests of seed 660088
    # 960 tests of seed 660089
    # 960 tests of seed 660090
    # 960 tests of seed 660091
    "adapter-errors": 2.57,
    "adapter-slow": 3.39,
    "agent-lag": 1.43,
    "api-errors": 2.01,
    "autoscaler-at-max": -0.43,
    "autoscaler-slow": -0.30,
    "controller-backlog": -0.27,
    "controller-qps": 0.43,
    "controller-requeue": 0.99,
    "cpu-starved": 1.24,
    "db-connections": 1.62,
    "db-full": 1.45,
    "db-slow-listing": 1.25,
    "driver-overhead": 0.93,
    "image-missing": 1.65,
    "image-pull": 0.29,
    "lb-imbalance": 0.80,
    "node-pressure": 1.69,
    "nodes-exhausted": 0.30,
    "oom": 1.40,
    "parallelism-cap": 1.46,
    "quota": 1.80,
    "runtime-saturated": 1.15,
    "slow-worker": 0.94,
    "spot-evictions": 0.34,
    "store-full": 0.34,
    "store-slow": -0.03,
    "store-unreachable-from-old-nodes": 2.76,
    "stranded-capacity": 0.31,
}
