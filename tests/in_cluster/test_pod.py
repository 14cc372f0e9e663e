import os
import signal
import subprocess
import sys
import threading

from harness.in_cluster import pod


def test_the_run_folder_is_kept_until_it_was_taken(tmp_path):
    stop, kept = threading.Event(), []
    keeper = threading.Thread(target=lambda: kept.append(pod.keep(tmp_path, 0.5, stop)))
    with pod.at_work(tmp_path):
        keeper.start()
        keeper.join(1.2)
        assert keeper.is_alive(), "the load is at work"
        (tmp_path / pod.TAKEN).touch()
        keeper.join(10)
    assert kept == [True]


def test_a_load_that_was_killed_is_over(tmp_path):
    code = (
        "import sys, pathlib, time; from harness.in_cluster import pod\n"
        "with pod.at_work(pathlib.Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    process.stdout.readline()
    assert (tmp_path / "load.pid").read_text() == str(process.pid)
    process.kill()
    process.communicate()
    assert pod.keep(tmp_path, 0.5, threading.Event()) is False  # one look: over, but not taken


def test_a_pod_that_is_deleted_keeps_nothing(tmp_path):
    stop = threading.Event()
    stop.set()
    assert pod.keep(tmp_path, 600, stop) is False
    with pod.at_work(tmp_path):
        pass
    assert pod.keep(tmp_path, 600, stop) is False


def test_the_commands_work_in_their_containers(tmp_path):
    state = str(tmp_path)
    subprocess.run(pod.taken_command(state), check=True)
    assert (tmp_path / pod.TAKEN).exists()
    waiting = subprocess.Popen(["sleep", "60"])
    (tmp_path / "load.pid").write_text(str(waiting.pid))
    subprocess.run(pod.stop_command(state), check=True)
    assert waiting.wait(10) == -signal.SIGTERM


def test_a_signal_to_the_container_reaches_the_load_as_ctrl_c(tmp_path):
    load = "trap 'exit 130' INT; echo ready; while :; do sleep 0.05; done"
    code = f"import sys; from harness.in_cluster import pod; sys.exit(pod.run(['sh', '-c', {load!r}]))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 130
