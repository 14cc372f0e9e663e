"""The default name of a run."""

import time


def run_name(target: str, schedule: str, runs: int, started_at: int) -> str:
    """``<utc>-<target>-<schedule>-<runs>``; `started_at` in UTC nanoseconds."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(started_at / 1e9))
    return f"{stamp}-{target}-{schedule}-{runs}"
