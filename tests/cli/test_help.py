"""Every verb's help says what it does, and keeps to a terminal of 80 columns."""

import pytest

from generators.cli import main as generate_scenarios
from harness.cli import main as pipeswarm
from harness.cli.verbs import VERBS

CALLS = [
    (pipeswarm, []),
    *((pipeswarm, [name]) for name, _, _ in VERBS),
    *((pipeswarm, ["simulate", verb]) for verb in ("run", "serve", "profiles")),
    (pipeswarm, ["adapter", "serve"]),
    (generate_scenarios, []),
    (generate_scenarios, ["workload"]),
]


@pytest.mark.parametrize(("main", "verb"), CALLS, ids=[f"{main.__module__} {' '.join(verb)}" for main, verb in CALLS])
def test_help_describes_the_verb_within_80_columns(main, verb, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*verb, "--help"])
    assert ended.value.code == 0
    usage, description, options = capsys.readouterr().out.split("\n\n", 2)
    assert usage.startswith("usage: ")
    assert description.endswith(".")
    assert "--help" in options
    assert max(map(len, f"{usage}\n{description}\n{options}".splitlines())) <= 80
