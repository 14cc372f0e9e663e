"""Baselines: an earlier run's ``report.json``, of which the run that is compared with it keeps a copy."""

from pathlib import Path

from harness import reading
from harness.model.baseline import Baseline
from harness.model.errors import ConfigError
from harness.store.folder import REPORT, RunFolder

_KEPT = "baseline.json"


def find_baseline(path: Path) -> tuple[Baseline, bytes]:
    """The baseline at `path`, a run folder or its ``report.json``, and its bytes.

    Raises:
        ConfigError: there is none, or no test can be compared with it.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        content = RunFolder(path).read_bytes(REPORT) if path.is_dir() else reading.read_bytes(path)
    except FileNotFoundError:
        raise ConfigError(f"the baseline {path} has no {REPORT}", "create it with pipeswarm report RUN") from None
    except OSError as error:
        raise ConfigError(f"the baseline {file} can't be read: {error.strerror}", "give a run's folder") from error
    return _parsed(content, str(path)), content


def keep_baseline(folder: RunFolder, content: bytes) -> None:
    """Keep a baseline in the folder of the run that is compared with it."""
    folder.replace(_KEPT, content)


def kept_baseline(folder: RunFolder) -> Baseline | None:
    """The baseline that is kept in `folder`.

    Raises:
        ConfigError: it is damaged.
    """
    if not folder.has(_KEPT):
        return None
    return _parsed(folder.read_bytes(_KEPT), str(folder.path / _KEPT))


def _parsed(content: bytes, source: str) -> Baseline:
    return Baseline.parse(reading.parse_json(content, f"the baseline {source}", "give a run's folder"), source)
