"""Names of run folders: which one is free, and the removal of a run whose name is to be used again."""

import os
import re
import shutil
from pathlib import Path

from harness.model.errors import ConfigError
from harness.store.claims import Claim

MANIFEST = "manifest.json"  # what makes a folder a run's


def safe_name(name: str) -> str:
    """The name of a folder for a run called `name`: it is one part of a path, without special characters."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"


def free_name(runs_dir: Path, name: str) -> str:
    """The folder name for `name`, with the lowest number from 2 on if it is in use below `runs_dir`."""
    safe, number = safe_name(name), 1
    free = safe
    while os.path.lexists(runs_dir / free):
        number += 1
        free = f"{safe}-{number}"
    return free


def used(runs_dir: Path, name: str) -> ConfigError:
    """The refusal of a name that is in use."""
    return ConfigError(
        f"{runs_dir / safe_name(name)} exists", f"give a free name: --run-name {free_name(runs_dir, name)}"
    )


def demand_free(runs_dir: Path, name: str, *, overwrite: bool) -> None:
    """Check that a run called `name` can be made; with `overwrite` also instead of a former run.

    Raises:
        ConfigError: the name is in use, or what has it is no run folder.
    """
    path = runs_dir / safe_name(name)
    if not os.path.lexists(path):
        return
    if not overwrite:
        refusal = used(runs_dir, name)
        raise ConfigError(refusal.message, f"{refusal.hint}, or replace that run: --overwrite")
    if path.is_symlink() or not (path / MANIFEST).is_file():
        raise ConfigError(f"--overwrite: {path} is not a run folder", "give another --run-name")


def remove_run(runs_dir: Path, name: str) -> None:
    """Remove the run folder of this name, if there is one.

    Raises:
        ConfigError: it is in use, is no run folder, or can't be removed.
    """
    demand_free(runs_dir, name, overwrite=True)
    path = runs_dir / safe_name(name)
    if not path.exists():
        return
    with Claim(path):
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise ConfigError(f"{path} can't be removed: {error.strerror}", "give another --run-name") from error
