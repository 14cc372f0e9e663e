import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from generators.cli import main
from generators.generate import BLOCK_ROWS

COMMAND = [sys.executable, "-m", "generators"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, **more):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False, **more)


def table(path="scenarios.csv"):
    with open(path, newline="", encoding="utf-8") as lines:  # noqa: PTH123  # as a user reads it
        return list(csv.DictReader(lines))


def test_five_thousand_scenarios_with_id_and_name_first(capsys):
    assert main(["--n", "5000", "--seed", "3"]) == 0
    assert "wrote 5,000 scenarios" in capsys.readouterr().err
    header = Path("scenarios.csv").read_text().splitlines()[0]
    assert header.startswith("id,scenario_name,")
    rows = table()
    assert [row["id"] for row in rows] == [str(k) for k in range(1, 5001)]
    assert len({row["url"] for row in rows}) > 2000


def test_the_manifest_is_enough_to_reproduce_the_file(capsys):
    spec = Path("s.yaml")
    spec.write_text("seed: 11\nrows: 30\nfields:\n  who: {faker: name, pool: 20}\n")
    assert main(["--spec", "s.yaml", "-o", "out.csv", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    manifest = json.loads(Path("out.csv.manifest.json").read_text())
    assert shown == manifest
    content = Path("out.csv").read_bytes()
    assert manifest["sha256"] == hashlib.sha256(content).hexdigest()
    assert (manifest["seed"], manifest["rows"], manifest["bytes"]) == (11, 30, len(content))
    assert manifest["versions"].keys() == {"pipeswarm", "numpy", "faker"}
    assert [v["values"] for v in manifest["vocabularies"].values()] == [20]
    assert str(Path.cwd()) not in json.dumps(manifest)


def test_another_vocabulary_is_visible_in_the_manifest(monkeypatch):
    Path("s.yaml").write_text("fields:\n  who: {faker: city, pool: 20}\n")
    digests = []
    for cities in (["Wien", "Graz"], ["Wien", "Linz"]):
        from faker.providers.address.en_US import Provider

        monkeypatch.setattr(Provider, "city", lambda self, cities=cities: self.random_element(cities))
        main(["--spec", "s.yaml", "--n", "5", "--quiet"])
        vocabularies = json.loads(Path("scenarios.csv.manifest.json").read_text())["vocabularies"]
        digests += [v["sha256"] for v in vocabularies.values()]
    assert len(set(digests)) == 2


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_the_suffix_of_the_name_is_the_format(name):
    assert main(["--n", "20", "-o", name, "--quiet"]) == 0
    read = {"x.csv": pd.read_csv, "x.jsonl": partial(pd.read_json, lines=True), "x.parquet": pd.read_parquet}[name]
    assert len(read(name)) == 20


def test_the_standard_output_takes_any_format_and_gets_nothing_else():
    done = run("--n", "3", "-o", "-", "--format", "jsonl")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert done.returncode == 0
    assert not list(Path.cwd().iterdir())


def test_a_closed_pipe_is_not_an_error():
    done = subprocess.run(
        f"{sys.executable} -m generators --n 400000 -o - --quiet | head -n 1", shell=True, capture_output=True, check=False, timeout=120
    )  # fmt: skip
    assert done.stdout.startswith(b"id,scenario_name,")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--spec", "none.yaml"], "none.yaml does not exist"),
        (["-o", "x.txt"], "the name x.txt has no known suffix"),
        (["-o", "no/such/x.csv"], "can't be written: No such file or directory"),
        (["-o", "x.jsonl", "--excel-safe"], "--excel-safe and --crlf are for CSV"),
        (["--from-csv", "none.csv"], "none.csv does not exist"),
        (["--from-run", "none"], "there is no run folder at none"),
        (["--check", "none.csv"], "none.csv does not exist"),
        (["workload", "--plot", "x.gif"], "x.gif ends neither in .svg nor in .png"),
        (["workload", "--for", "soon"], "'soon' is not a duration"),
        (["workload", "--for", "1h", "--width", "5"], "--width: '5' is not a range"),
    ],
)
def test_bad_input_ends_with_a_fix_and_exit_code_2(capsys, arguments, said):
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert shown.startswith("error: ")
    assert "\n  → " in shown
    assert not list(Path.cwd().iterdir())


def test_a_failed_write_leaves_the_old_file_alone():
    Path("scenarios.csv").write_text("precious")
    Path("s.yaml").write_text("fields:\n  x: {expression: 1 / (150000 - id)}\n")
    assert main(["--spec", "s.yaml", "--n", "200000", "--quiet"]) == 2
    assert Path("scenarios.csv").read_text() == "precious"
    assert {path.name for path in Path.cwd().iterdir()} == {"scenarios.csv", "s.yaml"}


def started(*arguments, size=1):
    """A generation that has written so many bytes."""
    process = subprocess.Popen(
        [*COMMAND, "--n", "50000000", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not [part for part in Path.cwd().glob(".scenarios.csv.*.part") if part.stat().st_size >= size]:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_generation_that_is_stopped_cleans_up(sent, code, processes):
    process = started("--processes", processes)
    process.send_signal(sent)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in said
    assert not list(Path.cwd().iterdir())


def test_a_generation_that_is_killed_leaves_no_process_and_no_file_under_the_final_name():
    process = started("--processes", "2", size=2 * BLOCK_ROWS * 100)  # the first block is of the process itself
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # until the last process has closed its end of the pipes
    assert not Path("scenarios.csv").exists()


def test_progress_is_printed_as_lines_from_100_000_rows():
    done = run("--n", "200000")
    assert "131,072 of 200,000 scenarios" in done.stderr
    assert "\x1b" not in done.stderr
    assert "of" not in run("--n", "200000", "--quiet").stderr


def test_the_load_can_ask_for_scenarios_with_few_imports():
    code = "import sys; from generators.cli import main; main(['--n','50','--quiet']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"kfp", "faker", "pandas", "pyarrow", "rich"} & set(modules)


def test_help_lists_every_option(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("--from-pipeline", "--from-workflow", "--from-csv", "--from-run", "workload"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux' /dev/full, a device without room")
def test_a_full_disk_is_an_error_without_a_traceback():
    with open("/dev/full", "wb") as full:  # noqa: PTH123  # a device
        done = subprocess.run(
            [*COMMAND, "--n", "5000", "-o", "-"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_progress_is_a_bar_on_a_terminal():
    reader, terminal = os.openpty()
    with os.fdopen(terminal, "wb") as stderr:
        done = subprocess.Popen([*COMMAND, "--n", "2000000", "-o", "-"], stdout=subprocess.DEVNULL, stderr=stderr)
    shown = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # how Linux says that nobody writes to the terminal any more
            break
        if not piece:
            break
        shown += piece
    os.close(reader)
    assert done.wait(timeout=60) == 0
    assert b"\x1b[" in shown
    assert b"/2000000" in shown
    assert b"wrote 2,000,000 scenarios" in shown
