"""Locustfiles declare; Locust's events decide. A fresh interpreter each, because Locust's events are global."""

import subprocess
import sys

import pytest

DECLARED = """
from harness.drive.user import PipelineUser
class Runs(PipelineUser):
    platform = "{platform}"
print("declared", flush=True)
from locust.argument_parser import get_parser
get_parser(default_config_files=[])
print("parsed")
"""
INTERRUPTED = """
import sys
class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "harness.model.slo":
            raise KeyboardInterrupt
sys.meta_path.insert(0, CtrlC())
"""


def declare(platform, before=""):
    code = before + DECLARED.format(platform=platform)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("platform", "before", "code", "out"),
    [("kfp", "", 0, "declared\nparsed\n"), ("kubeflow", "", 2, "declared\n"), ("kfp", INTERRUPTED, 130, "declared\n")],
    ids=["a target", "no target", "Ctrl-C"],
)
def test_declaring_a_user_never_ends_the_process_but_parsing_the_options_may(platform, before, code, out):
    done = declare(platform, before)
    assert (done.returncode, done.stdout) == (code, out), done.stderr
    assert "Traceback" not in done.stderr
    assert ("unknown target 'kubeflow'" in done.stderr) is (platform == "kubeflow")
