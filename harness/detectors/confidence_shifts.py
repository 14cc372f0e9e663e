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
    # 960 tests of seed 660092
    # 960 tests of seed 660093
    "adapter-errors": 2.71,
    "adapter-slow": 3.44,
    "agent-lag": 1.19,
    "api-errors": 2.19,
    "autoscaler-at-max": -0.09,
    "autoscaler-slow": -0.42,
    "controller-backlog": -0.37,
    "controller-qps": 0.42,
    "controller-requeue": 1.05,
    "cpu-starved": 2.15,
    "db-connections": 1.77,
    "db-full": 1.61,
    "db-slow-listing": 1.41,
    "driver-overhead": 1.10,
    "image-missing": 1.81,
    "image-pull": 0.33,
    "lb-imbalance": 0.87,
    "node-pressure": 1.84,
    "nodes-exhausted": 0.40,
    "oom": 1.58,
    "parallelism-cap": 1.61,
    "quota": 1.96,
    "runtime-saturated": 1.25,
    "slow-worker": 1.02,
    "spot-evictions": 0.22,
    "store-full": 0.30,
    "store-slow": 0.07,
    "store-unreachable-from-old-nodes": 2.96,
    "stranded-capacity": 0.24,
}
