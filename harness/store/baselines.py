"""A baseline is a former run's ``report.json``; the run that is held against it keeps a copy, as of its inputs."""

from pathlib import Path

from harness.model.baseline import Baseline
from harness.model.errors import ConfigError
from harness.store.folder import REPORT, RunFolder

_KEPT = "baseline.json"


def find_baseline(path: Path) -> tuple[Baseline, bytes]:
    """The baseline at `path`, a run folder or its ``report.json``, and its bytes.

    Raises:
        ConfigError: there is none, or nothing can be held against it.
    """
    file = path / REPORT if path.is_dir() else path
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"the baseline {path} has no {REPORT}", "pipeswarm report RUN writes it") from None
    except OSError as error:
        raise ConfigError(f"the baseline {file} can't be read: {error.strerror}", "give a run's folder") from error
    return Baseline.parse(content, str(path)), content


def keep_baseline(folder: RunFolder, content: bytes) -> None:
    """Keep a baseline in the folder of the run that is to be held against it."""
    folder.replace(_KEPT, content)


def kept_baseline(folder: RunFolder) -> Baseline | None:
    """The baseline that is kept in `folder`.

    Raises:
        ConfigError: it has been damaged.
    """
    file = folder.path / _KEPT
    return find_baseline(file)[0] if file.is_file() else None
