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
    "adapter-errors": 2.33,
    "adapter-slow": 3.29,
    "agent-lag": 1.37,
    "api-errors": 1.90,
    "autoscaler-at-max": -0.44,
    "autoscaler-slow": -0.43,
    "controller-backlog": -0.15,
    "controller-qps": 0.40,
    "controller-requeue": 0.91,
    "cpu-starved": 1.13,
    "db-connections": 1.55,
    "db-full": 1.36,
    "db-slow-listing": 1.14,
    "driver-overhead": 0.82,
    "image-missing": 1.56,
    "image-pull": 0.28,
    "lb-imbalance": 0.77,
    "node-pressure": 1.59,
    "nodes-exhausted": 0.19,
    "oom": 1.31,
    "parallelism-cap": 1.42,
    "quota": 1.69,
    "runtime-saturated": 1.09,
    "slow-worker": 1.03,
    "spot-evictions": -0.36,
    "store-full": 0.62,
    "store-slow": -0.10,
    "store-unreachable-from-old-nodes": 2.65,
    "stranded-capacity": 0.31,
}
