"""An experiment whose points are load tests with Locust."""

import json

import pytest

from harness.collectors.kubernetes.node_pools import NodePools
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.experiment import Point
from harness.planning import experiment_tests
from harness.planning.experiment_file import read_experiment
from harness.planning.sweeps import Workers
from tests.support.e2e import QUICK, ROOT
from tests.support.punctuality import skip_if_the_machine_is_late


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_load_test_measures_one_point(tmp_path):
    """The real locust, the real locustfile, the quick simulated platform."""
    path, runs = tmp_path / "plan.yaml", tmp_path / "out" / "runs"
    path.write_text(
        f"loads: 5\nnodes: 2\nrepetitions: 1\nlocustfile: {ROOT / 'locustfiles' / 'kfp.py'}\n"
        f"slos: ['failed_ratio < 0.5']\noptions: {{simulate: {QUICK}}}\n"
    )
    try:
        result = experiment_tests.tester(read_experiment(path), tmp_path / "out", NodePools, Workers(1)).first(
            [Point("default", 5, 2, 0)]
        )
    except PipeswarmError as error:
        reports = [json.loads(report.read_text()) for report in runs.glob("*/report.json")]
        assert len(reports) == 3, "an invalid test is repeated twice"
        reasons = [reason for report in reports for reason in report["validity"]["reasons"]]
        if error.exit_code is ExitCode.INVALID and all("arrivals left late" in reason for reason in reasons):
            skip_if_the_machine_is_late(last=True)
        raise
    assert result.met
    assert 0 < result.values["makespan (s)"] < 120
    assert result.values["failed_ratio"] == 0.0
    assert (runs / result.run / "report.html").is_file(), "the experiment's page links to it"
