"""The ids of a run's trace: known before it is sent, so that what the platform records of it joins the same trace."""

import hashlib

TRACEPARENT = "traceparent"  # https://www.w3.org/TR/trace-context/#traceparent-header
_SUBMISSION = "submission"


def trace_id(test: str, seq: int) -> int:
    """128 bits: the trace of an arrival; `test` is the plan's id."""
    return _digest(16, test, str(seq))


def span_id(test: str, seq: int, *names: str) -> int:
    """64 bits: a span in the trace of an arrival; without names the run itself."""
    return _digest(8, test, str(seq), *names)


def submission_id(test: str, seq: int) -> int:
    """64 bits: the span of the request that submits it."""
    return span_id(test, seq, _SUBMISSION)


def traceparent(test: str, seq: int) -> str:
    """The value of the header that the request carries: what the platform does for it belongs below this span."""
    return f"00-{trace_id(test, seq):032x}-{submission_id(test, seq):016x}-01"


def _digest(size: int, *names: str) -> int:
    said = "\n".join(names).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(said, digest_size=size).digest()) or 1  # 0 is no id
