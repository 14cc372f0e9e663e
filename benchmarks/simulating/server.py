"""A platform that is served in a process of its own, and a client of it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.simulating.platforms import ROOT


@contextlib.contextmanager
def served(text: str) -> Iterator[tuple[str, int, Path]]:
    """A platform in a process of its own: its address, its process, and what it says, as that it can't keep up."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "profile.yaml").write_text(text)
        said = Path(place) / "said"
        command = [sys.executable, "-m", "harness.simulator", "serve", "--profile", f"{place}/profile.yaml"]
        with (
            said.open("w") as errors,
            subprocess.Popen(
                [*command, "--die-with-parent"], cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["url"], process.pid, said
            finally:
                process.terminate()


class Client:
    """Submits by version, as a load test does."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.runs, self.pods = session, f"{url}/apis/v2beta1/runs", f"{url}/api/v1/pods"
        self.upload_to = f"{url}/apis/v2beta1/pipelines"
        self.body = b""

    async def upload(self, package: bytes) -> None:
        form = aiohttp.FormData()
        form.add_field("uploadfile", package, filename="pipeline.yaml")
        async with self.session.post(f"{self.upload_to}/upload?name=p", data=form) as answer:
            pipeline = (await answer.json())["pipeline_id"]
        async with self.session.get(f"{self.upload_to}/{pipeline}/versions") as answer:
            version = (await answer.json())["pipeline_versions"][0]["pipeline_version_id"]
        reference = {"pipeline_id": pipeline, "pipeline_version_id": version}
        self.body = json.dumps({"display_name": "r", "pipeline_version_reference": reference}).encode()

    async def submit(self) -> None:
        headers = {"Content-Type": "application/json"}
        async with self.session.post(self.runs, data=self.body, headers=headers) as answer:
            answer.raise_for_status()
            await answer.read()

    async def poll(self) -> None:
        async with self.session.get(f"{self.runs}?page_size=200&sort_by=created_at%20desc") as answer:
            answer.raise_for_status()
            await answer.read()

    async def list_pods(self, limit: int = 500, token: str = "") -> dict[str, Any]:
        """One page."""
        async with self.session.get(f"{self.pods}?limit={limit}&continue={token}") as answer:
            answer.raise_for_status()
            return await answer.json()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
