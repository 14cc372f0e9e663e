"""Submissions that were refused for what proves who sends them: the load generator's trouble, not the platform's."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from harness.analysis.timeline import TOKEN_EXPIRES, Bools, Timeline, floats
from harness.model.records import Outcome

# 401 of a platform, 407 of a proxy before it, and the ways to a login page: 303 and 307 keep or lose the method.
_STATUSES = (401, 407, 302, 303, 307, 308)
# A login page that is sent at once, by a gateway before the platform.
_LOGIN_PAGE = re.compile(r"not a (?:run|workflow): an HTML page.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RefusedCredentials:
    """The refused submissions.

    Attributes:
        count: how many there are.
        share: of all submissions.
        from_s: when the first of them was sent, in seconds after t0.
        accepted_after: submissions that were accepted later: something was renewed, or refuses in part.
        statuses: how often each status came.
        example: the answer to the first one.
        expires: when the token expires, as the load recorded it at its start; "" where that is not known.
    """

    count: int
    share: float
    from_s: float
    accepted_after: int
    statuses: dict[int, int]
    example: str
    expires: str


def is_refused(runs: pd.DataFrame) -> Bools:
    """Which of the rows were refused for their credentials."""
    rejected = (runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)
    answers = runs.loc[rejected, ["status", "error"]]
    status = answers["status"].isin(_STATUSES).to_numpy(dtype=bool)
    page = answers["error"].str.fullmatch(_LOGIN_PAGE).to_numpy(dtype=bool, na_value=False)
    found = np.zeros(len(runs), dtype=np.bool_)
    found[rejected] = status | page
    return found


def refused_credentials(timeline: Timeline) -> RefusedCredentials | None:
    """The submissions that were refused for their credentials; none if there are none."""
    runs = timeline.runs
    refused = runs[is_refused(runs)]
    if refused.empty:
        return None
    sent = floats(refused, "sent_s")
    first = int(np.nanargmin(sent))
    accepted = runs[runs["outcome"] == Outcome.ACCEPTED.value]
    later = int((floats(accepted, "sent_s") > np.nanmax(sent)).sum())
    statuses, counts = np.unique(floats(refused, "status"), return_counts=True)
    expires = timeline.events_of("Test", TOKEN_EXPIRES)["message"]
    return RefusedCredentials(
        count=len(refused),
        share=len(refused) / len(runs),
        from_s=float(sent[first]),
        accepted_after=later,
        statuses={int(status): int(count) for status, count in zip(statuses, counts, strict=True)},
        example=str(refused["error"].iloc[first]),
        expires=str(expires.iloc[-1]) if len(expires) else "",
    )
