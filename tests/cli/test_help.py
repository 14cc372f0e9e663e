"""Every verb's help says what it does, and keeps to a terminal of 80 columns."""

import pytest

from generators.cli import main as generate_scenarios
from harness.cli import main as pipeswarm
from harness.cli.verbs import MORE, VERBS

CALLS = [
    *((pipeswarm, [name]) for name, _, _ in VERBS),
    *((pipeswarm, ["simulate", verb]) for verb in ("run", "serve", "profiles", "adapter")),
    (pipeswarm, ["capacity", "jobs-per-node"]),
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


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_the_first_screen_lists_at_most_18_verbs_in_24_lines_of_80_columns(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        pipeswarm(arguments)
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    shown = {word for line in lines for word in line.split()[:2]}
    first = {name for name, _, _ in VERBS} - {name for name, _, _ in MORE}
    assert first <= shown
    assert len(first) <= 18
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80
