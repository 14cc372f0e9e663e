"""Four steps of a training pipeline, each a process, that hand frames and arrays on: through files, or Vineyard.

``python pipeline.py --share vineyard --rows 1000000`` runs all four, and starts and ends a vineyardd of its own unless
--socket names one. Each step prints how long it wrote, read, touched what it had read for the first time, and computed,
as lines that ``locustfiles/command.py`` understands.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sharing import Files, Share, Vineyard, vineyardd

if TYPE_CHECKING:
    import numpy as np

COLUMNS = tuple("abcdefgh")  # the last one is to be predicted; a row has 64 bytes
SEED = 7


@contextmanager
def timed(phase: str) -> Iterator[None]:
    """Print how long this phase took."""
    began_s = time.perf_counter()
    yield
    print(json.dumps({"phase": phase, "seconds": time.perf_counter() - began_s}), flush=True)


def write(share: Share, name: str, value: object) -> None:
    with timed("write"):
        share.write(name, value)
    if isinstance(share, Files):  # a shared memory is no cache
        with timed("drop caches"):
            share.drop_caches(name)


def read(share: Share, name: str) -> "np.ndarray":
    """The array or frame, all of it in reach: a shared memory is mapped when it is read, and loaded when it is used."""
    with timed("read"):
        value = share.read(name)
    with timed("first touch"):
        value.sum()
    return value


def prepare(share: Share, rows: int) -> None:
    """A frame whose last column depends on the others, and some gaps."""
    import numpy as np
    import pandas as pd

    with timed("compute"):
        random = np.random.default_rng(SEED)
        values = random.standard_normal((rows, len(COLUMNS)))
        values[:, -1] += values[:, :-1] @ np.arange(1.0, len(COLUMNS))
        values[random.integers(rows, size=rows // 100), 0] = np.nan
        frame = pd.DataFrame(values, columns=list(COLUMNS))
    write(share, "raw", frame)


def preprocess(share: Share, rows: int) -> None:
    """Without gaps, scaled, and split."""
    frame = read(share, "raw")
    with timed("compute"):
        whole = frame.dropna().to_numpy()
        scaled = (whole - whole.mean(axis=0)) / whole.std(axis=0)
        cut = len(scaled) * 4 // 5
    write(share, "train", scaled[:cut])
    write(share, "test", scaled[cut:])


def train(share: Share, rows: int) -> None:
    """Least squares."""
    import numpy as np

    data = read(share, "train")
    with timed("compute"):
        weights, *_ = np.linalg.lstsq(data[:, :-1].T @ data[:, :-1], data[:, :-1].T @ data[:, -1], rcond=None)
    write(share, "weights", weights)


def test(share: Share, rows: int) -> None:
    """The share of the variance that the model explains, which is high by construction."""
    data, weights = read(share, "test"), read(share, "weights")
    with timed("compute"):
        error = data[:, -1] - data[:, :-1] @ weights
        explained = 1 - float(error.var() / data[:, -1].var())
    if not explained > 0.9:
        sys.exit(f"the model explains only {explained:.0%} of the variance: the data was not handed on as it was")


STEPS: dict[str, Callable[[Share, int], None]] = {
    "prepare": prepare, "preprocess": preprocess, "train": train, "test": test,
}  # fmt: skip


def run_all(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.share == "files" or arguments.socket:
            run_steps(arguments, arguments.socket or folder)
            return
        with timed("start vineyardd"):
            server = vineyardd(Path(folder) / "vineyard.sock", arguments.size)
        try:
            run_steps(arguments, f"{folder}/vineyard.sock")
        finally:
            with timed("end vineyardd"):
                server.terminate()
                server.wait()


def run_steps(arguments: argparse.Namespace, place: str) -> None:
    given = ["--share", arguments.share, "--rows", str(arguments.rows), "--size", arguments.size]
    for step in STEPS:
        done = subprocess.run([sys.executable, __file__, *given, "--step", step, "--place", place], check=False)
        if done.returncode:
            sys.exit(f"{step} failed with exit code {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", choices=("files", "vineyard"), required=True)
    parser.add_argument("--rows", type=int, required=True, help="of the first frame, of 64 bytes each")
    parser.add_argument("--size", default="1Gi", help="memory of vineyardd; it holds twice the first frame")
    parser.add_argument("--socket", default="", help="of a vineyardd that runs already, instead of one of its own")
    parser.add_argument("--folder", default=None, help="where files and the socket go (default: the system's)")
    parser.add_argument("--step", choices=tuple(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--place", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rows < 1000:
        parser.error("--rows: give at least 1000")
    if not arguments.step:
        run_all(arguments)
        return
    with timed("import"):
        files = arguments.share == "files"
        share: Share = Files(Path(arguments.place)) if files else Vineyard(arguments.place, arguments.size)
    STEPS[arguments.step](share, arguments.rows)


if __name__ == "__main__":
    main()
