"""Baselines: an earlier run's ``report.json``, of which the run that is compared with it keeps a copy."""

from pathlib import Path

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
        content = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"the baseline {path} has no {REPORT}", "create it with pipeswarm report RUN") from None
    except OSError as error:
        raise ConfigError(f"the baseline {file} can't be read: {error.strerror}", "give a run's folder") from error
    return Baseline.parse(content, str(path)), content


def keep_baseline(folder: RunFolder, content: bytes) -> None:
    """Keep a baseline in the folder of the run that is compared with it."""
    folder.replace(_KEPT, content)


def kept_baseline(folder: RunFolder) -> Baseline | None:
    """The baseline that is kept in `folder`.

    Raises:
        ConfigError: it is damaged.
    """
    file = folder.path / _KEPT
    return find_baseline(file)[0] if file.is_file() else None
