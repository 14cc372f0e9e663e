"""By how much findings are right more often (+) or less often (-) than they state; see `confidence`.

Written by ``python benchmarks/detectors.py --fit``.
"""

from collections.abc import Mapping

SHIFTS: Mapping[str, float] = {  # 560 tests of seed 31415
    "adapter-errors": 0.95,
    "adapter-slow": 2.36,
    "api-errors": 0.72,
    "autoscaler-at-max": -0.73,
    "controller-backlog": 0.25,
    "controller-requeue": 1.59,
    "db-connections": 0.41,
    "db-full": 0.41,
    "driver-overhead": 0.50,
    "image-missing": 0.58,
    "image-pull": 0.20,
    "lb-imbalance": 1.37,
    "node-pressure": 0.50,
    "nodes-exhausted": -0.19,
    "oom": 0.41,
    "quota": 0.45,
    "runtime-saturated": 1.00,
    "store-slow": 0.41,
    "store-unreachable-from-old-nodes": 1.12,
    "stranded-capacity": 0.23,
}
