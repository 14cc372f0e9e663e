import json
from importlib.metadata import version

import pytest

from harness.cli import main


def test_every_option_of_a_locustfile_is_listed_with_default_and_meaning(capsys):
    assert main(["load", "kfp", "--options"]) == 0
    shown = capsys.readouterr().out
    for name in ("--schedule", "--runs", "--scenarios", "--slo", "--simulate", "--fault", "--pipeline", "--experiment"):
        assert name in shown
    assert "PIPESWARM_SCHEDULE" in shown
    assert main(["load", "kfp", "--options", "--json"]) == 0
    options = {option["name"]: option for option in json.loads(capsys.readouterr().out)["options"]}
    assert options["--schedule"]["default"] == "spread"
    assert {"constant", "burst", "replay"} <= set(options["--schedule"]["choices"])


def test_without_a_target_the_options_of_all_are_listed(capsys):
    assert main(["load", "--options"]) == 0
    assert capsys.readouterr().out.count("--service-account") == 2  # of kfp and of argo


def test_a_load_needs_a_target(capsys):
    assert main(["load"]) == 2
    assert "pipeswarm load kfp" in capsys.readouterr().err


def test_an_unknown_target_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["load", "moon", "--options"])
    assert ended.value.code == 2
    assert "kfp" in capsys.readouterr().err


def test_the_version_is_printed_as_by_other_tools(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pipeswarm {version('pipeswarm')}\n"
