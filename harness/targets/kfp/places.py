"""Where runs go: an experiment and a pipeline version, one for all runs, or one in the namespace of each tenant."""

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from harness.model.errors import ConfigError


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
