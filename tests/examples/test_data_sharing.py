"""The example of data sharing with a real vineyardd: what is handed on, what is timed, and what goes wrong."""

import importlib
import json
import socket
import subprocess
import sys

import numpy as np
import pytest

from tests.support.e2e import BIN, ROOT

FOLDER = ROOT / "examples/data_sharing"
ROWS = 20_000


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("vineyard", reason="vineyard has no wheel for this Python")
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("pipeline"), importlib.import_module("sharing")
    sys.path.remove(str(FOLDER))


@pytest.fixture
def server(example, tmp_path):
    """A vineyardd with 32 MiB, and its socket."""
    started = example[1].vineyardd(tmp_path / "v.sock", "32Mi")
    yield str(tmp_path / "v.sock")
    started.terminate()
    started.wait()


@pytest.mark.parametrize("way", ["files", "vineyard"])
def test_the_steps_hand_on_what_was_made_and_time_reads_writes_and_first_touches(
    example, way, server, tmp_path, capsys
):
    pipeline, sharing = example
    share = sharing.Files(tmp_path) if way == "files" else sharing.Vineyard(server, "32Mi")
    for step in pipeline.STEPS.values():
        step(share, ROWS)  # the last one ends this process if the data is not what it was
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    phases = [line["phase"] for line in lines if "phase" in line]
    expected = {"write": 4, "read": 4, "first touch": 4, "compute": 4} | ({"drop caches": 4} if way == "files" else {})
    assert {name: phases.count(name) for name in set(phases)} == expected
    assert all(line["seconds"] >= 0 for line in lines if "phase" in line)


def test_a_model_of_other_data_is_noticed(example, tmp_path):
    pipeline, sharing = example
    share = sharing.Files(tmp_path)
    for name in ("prepare", "preprocess", "train"):
        pipeline.STEPS[name](share, ROWS)
    share.write("weights", np.zeros(7))
    with pytest.raises(SystemExit, match="not handed on as it was"):
        pipeline.STEPS["test"](share, ROWS)


def test_a_full_memory_names_the_option(example, server):
    share = example[1].Vineyard(server, "32Mi")
    with pytest.raises(SystemExit, match="raise --size, which is 32Mi"):
        share.write("large", np.zeros(5 * 2**20))


def test_a_socket_without_a_listener_is_an_error(example, tmp_path):
    with socket.socket(socket.AF_UNIX) as unheard:
        unheard.bind(str(tmp_path / "v.sock"))
        with pytest.raises(SystemExit, match=r"no vineyardd answers at .*v\.sock"):
            example[1].Vineyard(str(tmp_path / "v.sock"), "32Mi")


def test_a_vineyardd_that_does_not_start_says_why(example, tmp_path):
    with pytest.raises(SystemExit, match=r"vineyardd does not start with --size 32Mi: .*long"):
        example[1].vineyardd(tmp_path / ("n" * 120), "32Mi")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_experiment_compares_both_ways_with_intervals(tmp_path):
    """The plan as it is, at smaller sizes."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "sizes.csv").write_text("id,scenario_name,rows\n1,small,20000\n2,large,1000000\n")
    plan = (FOLDER / "plan.yaml").read_text().replace("examples/data_sharing/sizes.csv", "sizes.csv")
    plan = plan.replace("loads: 3", "loads: 2").replace("repetitions: 6", "repetitions: 2")
    plan = plan.replace("../../locustfiles", str(ROOT / "locustfiles"))
    (tmp_path / "plan.yaml").write_text(plan)
    done = subprocess.run(
        [BIN / "pipeswarm", "experiment", "plan.yaml", "--folder", "out"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = [
        json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()
        if '"vineyard", "load": 2, "nodes": 1, "repetition": 1' in line
    ]  # fmt: skip
    assert result["values"]["large: phase read mean (s)"] > 0
    runs = [",".join(f"out/runs/{way}-2-1-{turn}" for turn in (0, 1)) for way in ("files", "vineyard")]
    compared = subprocess.run(
        [BIN / "pipeswarm", "compare", *runs, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    changes = {each["metric"]: each for each in json.loads(compared.stdout)["comparisons"]}
    for phase in ("write", "read", "first touch"):
        assert {f"small: phase {phase} mean (s)", f"large: phase {phase} mean (s)"} <= changes.keys()
    assert not any(each["significant"] for each in changes.values()), "two pairs of tests can't show anything"
    assert "small: phase drop caches mean (s)" not in changes, "only files have a cache to drop"
