"""What a rehearsal builds, and what it says where it can't."""

from pathlib import Path

import pytest

from tests.support.real_parts import building


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setattr(building, "CACHE", place)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", "")
    return place


def give(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for each in names:
        (folder / each).write_text("#!/bin/sh\n")


def test_without_go_the_missing_programs_and_what_to_install_are_said(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    give(tmp_path / "assets", "kube-apiserver", "kube-scheduler")
    building.build_missing()
    said = capsys.readouterr().out
    assert "missing: kube-controller-manager, workflow-controller; install Go" in said
    assert not cache.exists()


def test_with_all_programs_nothing_is_built(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    give(tmp_path / "assets", *building.PROGRAMS)
    building.build_missing()
    assert capsys.readouterr().out == ""
    assert not cache.exists()


def test_what_was_built_before_is_used_with_what_is_there(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, built = [*building.PROGRAMS][:1], [*building.PROGRAMS][1:]
    give(tmp_path / "assets", *there)
    give(cache, *built)
    building.build_missing()
    assert building.os.environ["KUBEBUILDER_ASSETS"] == str(cache)
    assert all((cache / each).exists() for each in building.PROGRAMS)
