import json
from importlib.metadata import version
from pathlib import Path

import pytest

from harness.cli import main


def test_every_option_of_a_locustfile_is_listed_with_default_and_meaning(capsys):
    assert main(["options", "kfp"]) == 0
    shown = capsys.readouterr().out
    for name in ("--schedule", "--runs", "--scenarios", "--slo", "--simulate", "--fault", "--pipeline", "--experiment"):
        assert name in shown
    assert "PIPESWARM_SCHEDULE" in shown
    assert main(["options", "kfp", "--json"]) == 0
    options = {option["name"]: option for option in json.loads(capsys.readouterr().out)["options"]}
    assert options["--schedule"]["default"] == "spread"
    assert {"constant", "burst", "replay"} <= set(options["--schedule"]["choices"])


def test_the_reference_page_is_up_to_date(capsys):
    assert main(["options", "--markdown"]) == 0
    page = Path(__file__).parents[2] / "docs" / "options.md"
    assert page.read_text(encoding="utf-8") == capsys.readouterr().out, "pipeswarm options --markdown > docs/options.md"


def test_an_unknown_target_is_refused_with_the_list(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["options", "moon"])
    assert ended.value.code == 2
    assert "kfp" in capsys.readouterr().err


def test_the_version_is_printed_as_by_other_tools(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pipeswarm {version('pipeswarm')}\n"
