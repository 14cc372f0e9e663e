"""The cluster's etcd is nearly full: beyond its quota nothing can be created or changed any more."""

from harness.detectors.detector import Capability, Evidence, Finding, Timeline, floats, format_bytes, slowed

NAME = "etcd-nearly-full"
NEEDS = (Capability.SUBMISSIONS, Capability.ETCD)
TARGETS = ("argo", "kfp")
EXPLAINED_BY = {"etcd-full": 0.0}

_SIZE, _QUOTA, _IN_USE = "etcd_db_bytes", "etcd_quota_bytes", "etcd_db_in_use_bytes"
# Where only the API server reports the size: etcd's default, and the most that its documentation recommends.
# Source: https://etcd.io/docs/latest/dev-guide/limit/
_QUOTAS = (2 * 2**30, 8 * 2**30)
_MIN_FULL, _HOUR_S, _MIN_GROWING = 0.8, 3600.0, 0.5
_MAX_USED = 0.5  # of the file in use: the rest is free once it is defragmented


def detect(timeline: Timeline) -> list[Finding]:
    """Its file takes most of its quota, or will within an hour at the rate at which it grew."""
    size, quota = floats(timeline.metric(_SIZE), "value"), floats(timeline.metric(_QUOTA), "value")
    last = float(size[-1])
    most = float(quota.min()) if quota.size and quota.min() > 0 else next((q for q in _QUOTAS if q > last), 0.0)
    if not most:
        return []
    at = floats(timeline.metric(_SIZE), "at_s")
    length_s = float(at[-1] - at[0])
    per_s = (last - float(size[0])) / length_s if length_s > 0 else 0.0
    soon = per_s > 0 and last >= _MIN_GROWING * most and (most - last) / per_s < _HOUR_S
    if last < _MIN_FULL * most and not soon:
        return []
    known = f"of its quota of {format_bytes(most)}"
    used = floats(timeline.metric(_IN_USE), "value")
    loose = bool(used.size) and float(used[-1]) < _MAX_USED * last
    guessed = "" if quota.size else " (a usual one: etcd's own metrics show it, the API server's don't)"
    return [
        Finding(
            NAME,
            f"The cluster's etcd is nearly full: {last / most:.0%} {known}{guessed}",
            0.9 if quota.size else 0.5,
            (
                Evidence(f"its file has {format_bytes(last)}", last, "B", "samples", f"metric = {_SIZE}"),
                *([Evidence(f"it grew by {format_bytes(60 * per_s)} a minute", per_s, "B/s", "samples")] if per_s > 0
                  else []),
                *([Evidence(f"of these, {format_bytes(float(used[-1]))} are in use", float(used[-1]), "B", "samples",
                            f"metric = {_IN_USE}")] if used.size else []),
            ),
            ("Defragment etcd, one member after the other: most of its file is free. " if loose else "")
            + "Delete finished workflows and give workflows a time to live (ttlStrategy), then compact and defragment "
            "etcd; raise --quota-backend-bytes (up to 8 GiB). On a managed cluster the provider does the latter.",
            (
                "kubectl get workflows -A --no-headers | wc -l",
                "kubectl delete workflows -A -l workflows.argoproj.io/completed=true",
            ),
            slowed(0.3),
        )
    ]  # fmt: skip
