"""Real processes through the exchange of the load: how they end, what they used, and that none is left behind."""

import os
import sys

import gevent
import orjson
import psutil
import pytest

from harness.drive.http.clients import ProcessClient
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.text.typed import from_plain
from harness.targets.command import completed
from harness.targets.command.ended import Ended
from harness.targets.target import PROCESSES, RejectedError

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)


def ask(request: HttpRequest) -> HttpAnswer:
    client = ProcessClient()
    try:
        return client(request)
    finally:
        client.close()


def run(*argv: str, time_limit_s: float = 60.0) -> Ended:
    answer = ask(request(argv, time_limit_s))
    assert answer.status == 200, answer.body
    document = orjson.loads(answer.body)
    return from_plain(Ended, document)


def request(argv, time_limit_s=60.0) -> HttpRequest:
    return HttpRequest("POST", "/", orjson.dumps({"argv": argv, "time_limit_s": time_limit_s}))


def python(script: str, **more) -> Ended:
    return run(sys.executable, "-S", "-c", script, **more)


def named(mark: str) -> list[psutil.Process]:
    """The processes whose command line contains the mark, but for this one."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if mark in " ".join(words) and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def until(true) -> bool:
    with gevent.Timeout(10, exception=False):
        while not true():
            gevent.sleep(0.02)
    return bool(true())


def supervisors() -> list[psutil.Process]:
    alive = (each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE)
    return [each for each in alive if "supervisor.py" in str(each.cmdline())]


def test_supervisors_are_started_in_advance_and_ended_when_nothing_more_is_sent():
    others = {each.pid for each in supervisors()}  # of tests before, in the same process

    def own() -> set[int]:
        return {each.pid for each in supervisors()} - others

    client = ProcessClient()
    client.warm(3, 20.0)
    before = own()
    assert len(before) == 3
    assert client(request(["true"])).status == 200
    assert len(own() - before) <= 1, "one of them ran the command"
    client.close()
    assert until(lambda: not own())


def test_it_says_that_it_runs_processes():
    assert ProcessClient()(HttpRequest("GET", "/")).body == PROCESSES.encode()


def test_the_answer_is_how_the_process_ended():
    ended = python(
        'import sys; print(\'{"phase": "read", "seconds": 0.5}\'); sys.stderr.write(\'no disk\'); sys.exit(3)'
    )
    assert (ended.exit_code, ended.errors, ended.phases, ended.left_behind) == (3, "no disk", (("read", 0.5),), 0)
    assert 0 < ended.took_s < 60
    assert ended.machine == os.uname().nodename


def test_words_reach_the_process_as_they_are():
    words = ["a b", "", "$HOME", "; exit 1", "ü"]
    script = f"import sys; sys.exit(7 if sys.argv[1:] == {words!r} else 8)"
    assert run(sys.executable, "-S", "-c", script, *words).exit_code == 7


def test_cpu_and_memory_are_those_of_the_whole_tree():
    child = "import time; x = bytearray(40 * 10**6); b = time.process_time()\nwhile time.process_time() - b < 0.3: pass\ntime.sleep(0.8)"
    ended = python(
        f"import subprocess, sys; c = [subprocess.Popen([sys.executable, '-S', '-c', {child!r}]) for _ in range(2)]\nfor p in c: p.wait()"
    )
    assert ended.cpu_s >= 0.6, "of both children"
    assert 80e6 < ended.peak_bytes < 400e6, "of both at once"


@pytest.mark.parametrize(("argv", "message"), [
    (["/no/such/program"], "No such file"),
    (["{place}"], "Permission denied"),
    (["{place}/text"], "Permission denied"),
    (["{place}/bad"], "Exec format error"),
    (["sleep", "1\0"], "null byte"),
])  # fmt: skip
def test_what_cannot_be_started_is_rejected_with_the_reason(tmp_path, argv, message):
    (tmp_path / "text").write_text("x")
    (tmp_path / "bad").write_bytes(b"\x7fELFno")
    (tmp_path / "bad").chmod(0o755)
    answer = ask(request([word.replace("{place}", str(tmp_path)) for word in argv]))
    with pytest.raises(RejectedError) as raised:
        completed(answer, "r", "step", 60.0)
    assert message in raised.value.message


def test_a_machine_that_starts_no_further_process_is_said(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("harness.drive.http.clients.os.posix_spawn", refuse)
    with pytest.raises(TargetUnreachableError, match="no further process can be started: Resource temporarily"):
        ProcessClient()(request(["true"]))


def test_much_output_is_read_and_not_kept():
    ended = python(
        "import os\nfor _ in range(1500): os.write(1, b'x' * 65536); os.write(2, b'y' * 8192)\nos.write(1, b'\\n{\"phase\": \"a\", \"seconds\": 1}\\n')"
    )
    assert (ended.exit_code, ended.phases, len(ended.errors)) == (0, (("a", 1.0),), 4096)


def test_a_process_that_exceeds_its_time_is_ended():
    ended = python("import time; time.sleep(60)", time_limit_s=0.3)
    assert (ended.timed_out, ended.killed, ended.exit_code) == (True, False, -15)


def test_a_process_that_ignores_sigterm_is_killed():
    ended = python(STUBBORN, time_limit_s=0.5)
    assert (ended.timed_out, ended.killed, ended.exit_code) == (True, True, -9)


@pytest.mark.parametrize("daemon", ["", "import os; os.setsid(); "])
def test_children_that_are_left_behind_are_ended(daemon, tmp_path):
    mark = f"left-behind-{tmp_path.name}"
    child = f"{daemon}import time; time.sleep(60)  # {mark}"
    ended = python(f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {child!r}])")
    assert (ended.exit_code, ended.left_behind) == (0, 1)
    assert not named(mark)


def test_a_request_that_is_abandoned_ends_its_processes(tmp_path):
    mark = f"abandoned-{tmp_path.name}"
    waiting = gevent.spawn(
        ProcessClient(), request([sys.executable, "-S", "-c", f"import time; time.sleep(60)  # {mark}"])
    )
    assert until(lambda: named(mark))
    waiting.kill()
    assert until(lambda: not named(mark))
