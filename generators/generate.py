"""From a spec to a file: blocks of rows are drawn, in one process or several, and written in their order."""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, BinaryIO, cast

from generators.files import Digested
from generators.formats import Format
from generators.sampler import Sampler
from generators.sources import Sources
from generators.spec import Spec

BLOCK_ROWS = 65_536  # columns of a block stay in the processor's cache; the memory needed does not grow with n
_WAITING = 2  # blocks per process that are drawn ahead of the writing

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be generated."""

    spec: Spec
    seed: int
    rows: int
    format: Format
    sources: Sources


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    rows: int
    size: int
    sha256: str


def generate(job: Job, out: BinaryIO, progress: Progress, processes: int = 1, block_rows: int = BLOCK_ROWS) -> Written:
    """Write all rows to `out`; the bytes do not depend on `processes` or `block_rows`.

    `progress` is told how many rows have been written.

    Raises:
        ConfigError: a field can't be drawn.
    """
    digested = Digested(out)
    try:
        _write(job, cast("BinaryIO", digested), progress, processes, block_rows)
    except OSError as error:
        raise digested.failure or error from None
    return Written(job.rows, digested.size, digested.sha256)


def _write(job: Job, out: BinaryIO, progress: Progress, processes: int, block_rows: int) -> None:
    sampler = Sampler(job.spec, job.seed, job.rows, job.sources)
    starts = range(0, job.rows, block_rows)
    blocks = [(start, min(start + block_rows, job.rows)) for start in starts]
    # The first block is drawn here in any case: it tells the types of the columns, and finds what can't work.
    first = sampler.block(*blocks[0])
    sink = job.format.sink(out, first)
    sink.draw(first)
    progress(blocks[0][1])
    del first
    rest = blocks[1:]
    if processes > 1 and len(rest) > 1 and not job.spec.sequential:
        for (_, stop), piece in zip(rest, _drawn_elsewhere(job, rest, processes), strict=True):
            sink.add(piece)
            progress(stop)
    else:
        for start, stop in rest:
            sink.draw(sampler.block(start, stop))
            progress(stop)
    sink.finish()


def _drawn_elsewhere(job: Job, blocks: list[tuple[int, int]], processes: int) -> Iterator[bytes]:
    # Spawned, not forked: Polars' threads do not survive a fork.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _prepare, (job,))
    waiting: deque[Future[bytes]] = deque()
    coming = iter(blocks)
    try:
        for block in coming:
            waiting.append(pool.submit(_piece, *block))
            if len(waiting) >= processes * _WAITING:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


_prepared: list[tuple[Sampler, Format]] = []


def _prepare(job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the parent ends us
    _prepared.append((Sampler(job.spec, job.seed, job.rows, job.sources), job.format))


def _piece(start: int, stop: int) -> bytes:
    sampler, form = _prepared[0]
    return form.piece(sampler.block(start, stop))


def manifest(job: Job, written: Written, name: str) -> Mapping[str, Any]:
    """What is needed to make the same file again, and to tell whether it is the same; it names no time and no place."""
    sources = job.sources.identities()
    packages = ["pipeswarm", "numpy", "polars", *(["faker"] if sources["vocabularies"] else [])]
    return {
        "schema_version": 1,
        "file": name,
        "format": type(job.format).__name__.lower(),
        "rows": written.rows,
        "columns": job.spec.columns,
        "bytes": written.size,
        "sha256": written.sha256,
        "seed": job.seed,
        "spec": {"source": Path(job.spec.source).name, "sha256": job.spec.digest},
        **sources,
        "versions": {package: version(package) for package in packages},
    }
