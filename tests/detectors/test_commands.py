"""The commands of findings are for a shell and a cluster: they are parsed, and those that can be are run."""

import os
import re
import shutil
import subprocess

import pytest

from benchmarks.planting.case import simulated
from benchmarks.planting.cases import CASES
from harness.detectors import diagnose
from harness.simulator.faults import FAULTS
from tests.detectors.planted import PLANTED
from tests.e2e.conftest import serve

# As the platforms' own manifests name them.
DEPLOYMENTS = {"ml-pipeline", "ml-pipeline-persistenceagent", "workflow-controller", "mysql", "seaweedfs", "minio"}
CHANGES = re.compile(r"kubectl (?:set|scale|patch|drain)\b")
# Nothing of the kind is simulated, or somebody has to sit at an editor.
# The simulated controller has no arguments to add to, as that of the manifests has.
ELSEWHERE = re.compile(
    r"containers/0/args|configmap|services|endpointslices|\bexec\b|\bedit\b|\bconfig\b|timedatectl|^\w+\.set_"
)


def commands_of(timeline):
    return [command for finding in diagnose(timeline).findings for command in finding.commands]


@pytest.mark.parametrize("name", PLANTED)
def test_every_command_is_one_for_a_shell_and_names_what_the_manifests_have(name, tmp_path):
    for command in commands_of(PLANTED[name]().timeline(tmp_path)):
        if not re.match(r"\w+\.set_", command):  # Python, for the pipeline's author
            subprocess.run(["bash", "-n", "-c", command], check=True)
        named = re.findall(r"\bdeploy(?:ment)?[/ ]([\w-]+)", command)
        assert set(named) <= DEPLOYMENTS, command


@pytest.mark.soak  # some thirty commands, each a process of its own
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_commands_run_against_the_cluster_that_was_observed():
    """Simulated tests of the profile that is served, with its seed: nodes, claims and deployments have the same names."""
    process, served = serve("--profile", "demo", "--seed", "0")
    environment = os.environ | {"KUBECONFIG": served.kubeconfig}
    try:
        nodes = _run("kubectl get nodes -o name", environment)
        found = {command for name in FAULTS for command in commands_of(simulated(CASES[name], 1.0, 0))}
        tried = sorted(each for each in map(there(nodes.stdout), found) if each and not ELSEWHERE.search(each))
        for command in tried:
            shown = CHANGES.sub(lambda match: f"{match[0]} --dry-run=server", command)
            done = _run(shown, environment)
            # A `grep` that finds nothing returns 1, and what kubectl says of an error goes through every pipe.
            assert done.returncode == 0 or "grep" in shown, (shown, done.stdout, done.stderr)
            assert "error" not in done.stderr.lower(), (shown, done.stderr)
    finally:
        process.terminate()
        process.wait(20)
    assert len([each for each in tried if CHANGES.search(each)]) >= 6


def _run(command, environment):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def there(listed):
    """A drain of the nodes that there were before the test; those that came with it are not served."""
    names = {line.removeprefix("node/") for line in listed.split()}

    def kept(command):
        if not command.startswith("kubectl drain"):
            return command
        given = [word for word in command.split()[2:] if not word.startswith("--") and word != "kubectl"]
        left = [name for name in given if name in names]
        return " ".join(["kubectl drain", *left, *command.split()[2 + len(given) :]]) if left else ""

    return kept
