"""The platform's bearer token: never an option's value, which process lists and web pages would show."""

from collections.abc import Mapping
from pathlib import Path

from harness.model.errors import ConfigError

VARIABLE = "PIPESWARM_TOKEN"


def read_token(file: str, environment: Mapping[str, str]) -> str:
    """The token in `file`, or of the environment where no file is named; "" is none.

    Raises:
        ConfigError: the file can't be read.
    """
    if not file:
        return environment.get(VARIABLE, "")
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"the token file {file} can't be read: {error.strerror}", "see --token-file") from error
