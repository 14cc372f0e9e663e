"""Listed runs: as KFP describes them, and the listings of several namespaces as one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from harness.model.errors import ConfigError
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.targets.answers import instant
from harness.targets.target import ListedRun

# --- where runs go: an experiment and a pipeline version, one for all runs, or one in the namespace of each tenant


class Place(NamedTuple):
    """What a run is submitted to, by the platform's ids."""

    experiment_id: str
    pipeline_id: str
    version_id: str


def pack(places: Mapping[str, Place]) -> str:
    """Places by namespace as an option of the plan."""
    return orjson.dumps([(namespace, *place) for namespace, place in places.items()]).decode()


def unpack(text: str) -> dict[str, Place]:
    """The reverse of `pack`; none for "".

    Raises:
        ConfigError: it is damaged.
    """
    try:
        rows = [tuple(map(str, row)) for row in orjson.loads(text or "[]")]
        return {namespace: Place(*ids) for namespace, *ids in rows}
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the plan's places of tenants can't be read: {error}", "repeat the test") from error


_TERMINAL = frozenset({SUCCEEDED, FAILED, CANCELED, SKIPPED})
_CANCELING = "CANCELING"
TEST_MARK = "pipeswarm test "  # and the plan's id, as description
_UNKNOWN = "RUNTIME_STATE_UNSPECIFIED"


def next_tokens(page: str, namespaces: Iterable[str]) -> dict[str, str]:
    """The token of each namespace's next page; one whose listing has ended has none."""
    if not page:
        return dict.fromkeys(namespaces, "")
    return {str(name): str(token) for name, token in orjson.loads(page).items()}


def merged(pages: Mapping[str, tuple[tuple[ListedRun, ...], str]]) -> tuple[tuple[ListedRun, ...], str]:
    """The runs of one page of each namespace, (runs, next token), as one page.

    Newest first, but for the last run: it is the one up to which all namespaces have been listed, since readers stop
    where the last run of a page is older than all that they look for.
    """
    runs = sorted((run for found, _ in pages.values() for run in found), key=lambda run: run.created_at, reverse=True)
    tokens = {name: token for name, (_, token) in pages.items() if token}
    ends = [pages[name][0][-1] for name in tokens if pages[name][0]]
    if ends:
        frontier = max(ends, key=lambda run: run.created_at)
        runs.remove(frontier)
        runs.append(frontier)
    return tuple(runs), orjson.dumps(tokens).decode() if tokens else ""


def listed(
    run: Mapping[str, Any], mark: str = "", namespace: str = "", name_of: Callable[[str], str] = str
) -> ListedRun:
    """A run in `namespace`; it has no name if its description marks it as of another test than `mark`.

    `name_of` tells the name of an uploaded pipeline by its id.

    A run whose state KFP does not know yet is PENDING: the first report has not come.
    """
    description = str(run.get("description", ""))
    other = bool(mark) and description.startswith(TEST_MARK) and description != mark
    reported = str(run.get("state") or _UNKNOWN)
    ended = reported in _TERMINAL
    state = CANCELED if reported == FAILED and _was_terminated(run) else reported
    return ListedRun(
        id=str(run["run_id"]),
        name="" if other else str(run.get("display_name", "")),
        state="PENDING" if state == _UNKNOWN else state,
        created_at=instant(run.get("created_at")) or 0,
        ended_at=instant(run.get("finished_at")) if ended else None,
        error=str((run.get("error") or {}).get("message", "")),
        reported_at=_reported_at(run, reported) if ended else None,
        pipeline=_pipeline(run, name_of),
        namespace=namespace,
    )


def _pipeline(run: Mapping[str, Any], name_of: Callable[[str], str]) -> str:
    if uploaded := (run.get("pipeline_version_reference") or {}).get("pipeline_id"):
        return name_of(str(uploaded))
    spec = run.get("pipeline_spec") or {}
    return str(((spec.get("pipeline_spec") or spec).get("pipelineInfo") or {}).get("name") or "")


def _was_terminated(run: Mapping[str, Any]) -> bool:
    """Whether a FAILED run failed because it was terminated: CANCELING precedes its end.

    A retried run runs again after that; then its end is its own.
    """
    states = [str(each.get("state") or "") for each in run.get("state_history") or ()]
    return next((state for state in reversed(states) if state != FAILED), "") == _CANCELING


def _reported_at(run: Mapping[str, Any], state: str) -> int | None:
    """When the API server learned of a state: the persistence agent's reports timestamp the run's history.

    A retried run has reached the same state before; the last time counts.
    """
    reports = [each.get("update_time") for each in run.get("state_history") or () if each.get("state") == state]
    return instant(reports[-1]) if reports else None
