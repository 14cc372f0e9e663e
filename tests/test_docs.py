"""Every command of the README and of docs/ is run as it stands, in a fresh folder, against a served platform."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from contextlib import suppress
from itertools import chain, count
from pathlib import Path

import pytest

from tests.support.e2e import BIN, CLEAN, QUICK, ROOT, free_port
from tests.support.punctuality import skip_if_the_machine_is_late
from tests.support.serving import simulated

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = {"hetida.md", "load.md", "capacity.md", "simulator.md", "tutorial.md"}  # with many load tests


def _page(path: Path):
    return pytest.param(path, id=path.name, marks=[pytest.mark.soak] if path.name in LONG else [])


BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINKING = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
# The addresses of the examples, and what stands for them here.
EXAMPLE_HOST = "https://kfp.example/pipeline"


def blocks(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def is_server(block: str) -> bool:
    """Locust with its web UI goes on until somebody ends it."""
    return "locust -f" in block and "--headless" not in block


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    for name in ("harness", "locustfiles", "examples", "deploy"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def environment():
    with simulated("--profile", QUICK, "--seed", "7") as served:
        yield CLEAN | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "KUBECONFIG": served.kubeconfig,
            "LOCUST_WEB_PORT": str(free_port()),
            "LOCUST_WEB_HOST": "127.0.0.1",
            "EXAMPLE": served.url,
        }


def shell(script: str, place: Path, environment: dict[str, str], **more) -> subprocess.Popen:
    script = script.replace(EXAMPLE_HOST, environment["EXAMPLE"])
    return subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script], cwd=place, env=environment, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more,
    )  # fmt: skip


def without_make(block: str) -> str:
    """`make` sets up a checkout of its own: CI runs `make check` and `make test`, tests/e2e/test_demo.py `make demo`."""
    return "\n".join(line for line in block.splitlines() if not line.startswith("make "))


@pytest.fixture(scope="module")
def read(place, environment):
    """Does what a page says, unless that was done before."""
    pages = set()

    def read(page: Path) -> None:
        if page not in pages:
            for block in blocks(page):
                follow(page, without_make(block), place, environment)
            pages.add(page)

    return read


def follow(page: Path, script: str, place: Path, environment: dict[str, str]) -> None:
    if is_server(script):
        process = shell(script, place, environment)
        answers(f"http://127.0.0.1:{environment['LOCUST_WEB_PORT']}", process)
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    elif script.strip():
        for last in (False, True):
            for name in re.findall(r"--run-name (\S+)", script):  # of an attempt before: it would be in use
                for runs in ("runs", "simulated"):
                    shutil.rmtree(place / runs / name, ignore_errors=True)
            process = shell(script, place, environment)
            out, _ = process.communicate(timeout=200)
            # This machine may be too busy, and the verdict says so.
            if not process.returncode or "arrivals left late" not in out:
                break
            skip_if_the_machine_is_late(last=last)
        assert process.returncode == 0, f"{page.name}:\n{script}\n{out}"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", [_page(page) for page in PAGES])
def test_the_commands_of_a_page_work_one_after_the_other(page, read):
    read(PAGES[0])  # the others go on with the run that the README makes
    read(page)


def answers(address: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(address, timeout=2).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"{address} does not answer: {process.communicate()[0]}")


def test_every_make_target_that_a_page_names_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        line.split()[1]
        for page in PAGES
        for block in blocks(page)
        for line in block.splitlines()
        if line.startswith("make ")
    }
    assert {"demo", "test"} <= named <= targets


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub derives them."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(next(each for each in chain((words,), (f"{words}-{k}" for k in count(1))) if each not in found))
    return found


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_links_exists(page):
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page.name} links {path}"
        assert not anchor or anchor in anchors(linked), f"{page.name} links {path}#{anchor}"
