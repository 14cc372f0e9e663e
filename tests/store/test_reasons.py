"""A user's own rows of the catalogue are checked, kept with the run, and used by its report."""

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.detectors import detectors, diagnose
from harness.model import ConfigError
from harness.planning.timelines import timeline_in
from harness.reasons import builtin
from harness.store import RunFolder
from harness.store.reasons import REASONS, detector_names, kept_reasons, read_reasons

ROW = """reasons:
- name: feature-store-down
  source: [workflow, log]
  pattern: 'no such column (?P<column>\\w+)'
  cause: the feature store has lost the column {column}
  layer: pipeline
  effect: fails
  fix: Restore the column from the nightly export.
  show: ["kubectl get pods -n features"]
  link: https://wiki.example/features
"""


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    from tests.support.injected.loads import steady

    return steady(40, fails=lambda seq: "main: Error (exit code 3): no such column price" * (seq % 4 == 0)).write(
        tmp_path
    )


def test_a_row_of_one_s_own_names_the_cause_and_stays_with_the_run(folder: RunFolder, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(ROW)
    assert "feature-store-down" not in {each.name for each in diagnose(timeline_in(folder)).findings}
    main(["report", str(folder.path), "--reasons", str(own), "--quiet"])
    first = diagnose(timeline_in(folder)).findings[0]
    assert first.name == "feature-store-down"
    assert first.title == "The feature store has lost the column price: 10 of 40 runs failed"
    assert first.commands == ("kubectl get pods -n features",)
    own.unlink()
    report = (folder.path / "report.json").read_bytes()
    main(["report", str(folder.path), "--quiet"])
    assert (folder.path / "report.json").read_bytes() == report


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  cause:", "  because:", r"own.yaml:5: reasons\[0\] \(feature-store-down\) has an unknown key 'because'"),
        (
            "  fix: Restore the column from the nightly export.\n",
            "",
            r"own.yaml:2: reasons\[0\] \(feature-store-down\) has no 'fix'",
        ),
        ("[workflow, log]", "[gossip]", "own.yaml:3: .*'gossip', which is no source"),
        ("layer: pipeline", "layer: heaven", "own.yaml:6: .*'heaven', which is no layer"),
        ("no such column (?P<column>\\w+)", "(?=a)b", "own.yaml:4: .*'pattern' that is not a regular expression"),
        ("feature-store-down", "Feature Store", "'name' that is not in kebab-case"),
        ("  pattern: 'no such column (?P<column>\\w+)'\n", "", "neither a pattern nor a reason"),
        (
            "  fix:",
            "  yields_to: [oom, failure]\n  fix:",
            r"own.yaml:8: reasons\[0\].yields_to: 'failure' is neither a detector nor a stated cause\n.*'failures'",
        ),
        (ROW, "reasons: 3", "has no list 'reasons'"),
        (ROW, "reasons: [", "not valid YAML"),
    ],
)
def test_a_wrong_row_is_reported_with_its_place_and_nothing_is_kept(folder, tmp_path, old, new, says) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(ROW.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        read_reasons(own)
    assert not folder.has(REASONS)
    assert main(["report", str(folder.path), "--reasons", str(own), "--quiet"]) == 2


def test_a_row_may_yield_to_any_detector_and_to_any_row(tmp_path: Path) -> None:
    assert {*detector_names()} == {detector.NAME for detector in detectors()}
    own = tmp_path / "own.yaml"
    own.write_text(ROW + "  yields_to: [failures, image-missing, feature-store-down]\n")
    assert read_reasons(own) == own.read_bytes()


def test_without_rows_of_its_own_a_run_has_the_built_in_catalogue(folder: RunFolder) -> None:
    assert kept_reasons(folder) is builtin()
    shutil.rmtree(folder.path)
