import pytest

from harness.model.errors import ConfigError
from harness.store.claims import Claim
from harness.store.folder import RunFolder
from harness.store.names import demand_free, free_name


def a_run(runs_dir, name):
    folder = RunFolder.create(runs_dir, name)
    (folder.path / "manifest.json").write_text("{}")
    return folder.path


def test_a_name_in_use_gets_the_next_free_number(tmp_path):
    assert free_name(tmp_path, "a b") == "a-b"
    a_run(tmp_path, "a b")
    a_run(tmp_path, "a b")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a-b", "a-b-2"]
    assert free_name(tmp_path, "a b") == "a-b-3"


def test_a_name_that_was_given_is_never_changed(tmp_path):
    kept = a_run(tmp_path, "nightly")
    with pytest.raises(ConfigError, match="nightly exists") as refused:
        RunFolder.create(tmp_path, "nightly", exactly=True)
    assert "--run-name nightly-2" in refused.value.hint
    with pytest.raises(ConfigError) as refused:
        demand_free(tmp_path, "nightly", overwrite=False)
    assert "--overwrite" in refused.value.hint
    assert [*tmp_path.iterdir()] == [kept]


def test_a_former_run_is_replaced_only_on_demand(tmp_path):
    former = a_run(tmp_path, "nightly")
    (former / "spans.jsonl").write_text("old")
    demand_free(tmp_path, "nightly", overwrite=True)
    new = RunFolder.create(tmp_path, "nightly", exactly=True, overwrite=True)
    assert new.path == former
    assert not [*former.iterdir()]


def test_a_running_test_is_not_replaced(tmp_path):
    former = a_run(tmp_path, "nightly")
    with Claim(former), pytest.raises(ConfigError, match="is in use"):
        RunFolder.create(tmp_path, "nightly", exactly=True, overwrite=True)
    assert (former / "manifest.json").exists()


def test_nothing_but_a_run_folder_is_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    elsewhere = a_run(tmp_path / "elsewhere", "run")
    (tmp_path / "link").symlink_to(elsewhere)
    (tmp_path / "file").write_text("x")
    for name in ("thesis", "link", "file"):
        with pytest.raises(ConfigError, match="is not a run folder"):
            RunFolder.create(tmp_path, name, exactly=True, overwrite=True)
    assert (elsewhere / "manifest.json").exists()
