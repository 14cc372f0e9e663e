"""A real S3 server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import until

KEY, SECRET = "probe-key", "probe-secret-of-the-test"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


@contextmanager
def object_store(path: Path) -> Iterator[str]:
    """An S3 server that stores objects in a folder."""
    rclone = shutil.which("rclone", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if rclone is None:
        pytest.skip("there is no rclone, which serves S3")
    command = [
        rclone,
        "serve",
        "s3",
        "--addr",
        "127.0.0.1:0",
        "--auth-key",
        f"{KEY},{SECRET}",
        "--vfs-cache-mode",
        "off",
        str(path),
    ]
    log = path.with_suffix(".log")
    with log.open("wb") as told:
        process = subprocess.Popen(command, stderr=told, stdout=told)
    try:
        until(lambda: "http://127.0.0.1:" in log.read_text(), "the S3 server")
        yield "http://" + log.read_text().split("http://", 1)[1].split("/", 1)[0].split()[0].rstrip('/"]')
    finally:
        process.terminate()
        process.wait(10)
