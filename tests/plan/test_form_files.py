"""The web form reaches files in its folder, and no others."""

import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.model.errors import ConfigError
from harness.plan.form_files import FormFiles
from harness.plan.plans import plan_observation
from harness.store.folder import RunFolder

OPTIONS = {"pipeline": {"yaml"}, "scenarios": {"csv"}, "schedule_file": {"yaml", "arrivals"}, "baseline": {"report"}}


@pytest.fixture
def place(tmp_path):
    """A folder to use, with secrets beside it and in it."""
    (tmp_path / "outside.csv").write_text("secret")
    folder = tmp_path / "files"
    for name in ("a.csv", "sub/b.CSV", "sub/deep/p.yaml", "r.json", "key.pem", ".env.csv", ".kube/config.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "out.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "inside.csv").symlink_to(folder / "a.csv")
    os.mkfifo(folder / "pipe.csv")
    return folder


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["..", ".", "", "a.csv", "up", "sub", "out.csv", ".kube", "config.yaml", "~", "/etc", "\0"])
        | st.text(max_size=5)
    )
)
def test_no_name_leads_out_of_the_folder(place, parts):
    with suppress(ConfigError):
        found = FormFiles.of(str(place)).find("/".join(parts), {"csv", "yaml"})
        assert found.is_relative_to(place)
        assert not found.is_symlink()
        assert not any(part.startswith(".") for part in found.relative_to(place).parts)


def run_in(place):
    run = RunFolder.create(place, "run")
    run.write_plan(plan_observation("kfp", "http://x", {}, 0))
    return run


@pytest.mark.parametrize(
    ("name", "formats", "found"),
    [("a.csv", {"csv"}, "a.csv"), ("sub/b.CSV", {"csv"}, "sub/b.CSV"), ("sub/../a.csv", {"csv"}, "a.csv"),
     ("sub/deep/p.yaml", {"yaml"}, "sub/deep/p.yaml"), ("r.json", {"yaml"}, "r.json"), ("a.csv", {"yaml", "arrivals"}, "a.csv"),
     ("inside.csv", {"csv"}, "a.csv")],
)  # fmt: skip
def test_a_file_of_the_right_format_in_the_folder_is_found(place, name, formats, found):
    assert FormFiles.of(str(place)).find(name, formats) == place / found
    assert FormFiles.of(str(place)).find(str(place / name), formats) == place / found


@pytest.mark.parametrize(
    "name",
    ["../outside.csv", "up/outside.csv", "out.csv", "/etc/passwd", "/proc/self/environ", "missing.csv", "key.pem",
     ".env.csv", ".kube/config.yaml", "sub/../.env.csv", "loop.csv", "pipe.csv", "sub", "", ".", "..", "a.csv\0", "x" * 5000,
     "~/a.csv", "a.csv\n", "r.json"],
)  # fmt: skip
def test_everything_else_is_refused_with_the_same_words(place, name):
    with pytest.raises(ConfigError, match="the form may use no file") as refused:
        FormFiles.of(str(place)).find(name, {"csv"})
    assert refused.value.message == f"the form may use no file '{name}'"


def test_a_run_folder_is_found_where_one_will_do(place):
    run_in(place)
    files = FormFiles.of(str(place))
    assert files.find("run", {"arrivals"}) == files.find("run", {"report"}) == place / "run"
    with pytest.raises(ConfigError):
        files.find("run", {"csv"})
    with pytest.raises(ConfigError):
        files.find("sub", {"report"})


def test_the_list_has_what_is_found_and_nothing_else(place):
    (run_in(place).path / "scenarios.csv").write_text("of the run")
    files = FormFiles.of(str(place))
    listed = files.listed(OPTIONS)
    assert listed == {
        "pipeline": ["r.json", "sub/deep/p.yaml"],
        "scenarios": ["a.csv", "sub/b.CSV"],
        "schedule_file": ["a.csv", "r.json", "run", "sub/b.CSV", "sub/deep/p.yaml"],
        "baseline": ["r.json", "run"],
    }
    for option, names in listed.items():
        assert all(files.find(name, OPTIONS[option]) for name in names)


def test_the_list_of_a_huge_folder_is_bounded(tmp_path):
    for number in range(600):
        (tmp_path / f"{number}.csv").touch()
    deep = tmp_path / "/".join("abcdefgh")
    deep.mkdir(parents=True)
    (deep / "deep.csv").touch()
    listed = FormFiles.of(str(tmp_path)).listed({"scenarios": {"csv"}})["scenarios"]
    assert len(listed) == 500
    assert not any("deep" in name for name in listed)


@pytest.mark.parametrize(
    ("name", "saved"),
    [("a.csv", "uploads/a.csv"), ("../../etc/x.yaml", "uploads/etc-x.yaml"), ("my file (1).CSV", "uploads/my-file-1-.CSV"),
     (".hidden.json", "uploads/hidden.json"), ("..\\..\\x.yml", "uploads/x.yml"), ("/abs.csv", "uploads/abs.csv"),
     ("Zählung.csv", "uploads/Zählung.csv")],
)  # fmt: skip
def test_an_upload_is_saved_inside_and_found_again(tmp_path, name, saved):
    files = FormFiles.of(str(tmp_path))
    assert files.save(name, [b"1,", b"2"]) == saved
    assert files.find(saved, {"csv", "yaml"}).read_bytes() == b"1,2"
    assert (tmp_path / saved).stat().st_mode & 0o077 == 0, "others can't read it"


def test_an_upload_overwrites_nothing(tmp_path):
    files = FormFiles.of(str(tmp_path))
    names = [files.save("a.csv", [text]) for text in (b"first", b"second", b"third")]
    assert names == ["uploads/a.csv", "uploads/a-2.csv", "uploads/a-3.csv"]
    assert (tmp_path / names[0]).read_bytes() == b"first"


@pytest.mark.parametrize(
    "name", ["locust.conf", "kfp.py", "x", ".csv", "", "..", "a.csv.sh", "x" * 300 + ".csv", "a.csv\0"]
)
def test_what_is_no_data_file_is_not_saved(tmp_path, name):
    with pytest.raises(ConfigError):
        FormFiles.of(str(tmp_path)).save(name, [b"x"])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_broken_upload_leaves_nothing(tmp_path):
    def broken():
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConfigError, match="can't be saved"):
        FormFiles.of(str(tmp_path)).save("a.csv", broken())
    assert list((tmp_path / "uploads").iterdir()) == []


def test_an_upload_follows_no_link(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "uploads").symlink_to(outside)
    with pytest.raises(ConfigError, match="is a link"):
        FormFiles.of(str(inside)).save("a.csv", [b"x"])
    (inside / "uploads").unlink()
    (inside / "uploads").mkdir()
    (inside / "uploads/a.csv").symlink_to(outside / "target.csv")
    assert FormFiles.of(str(inside)).save("a.csv", [b"x"]) == "uploads/a-2.csv"
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"--web-files: .* is not a folder"):
        FormFiles.of(str(tmp_path / "missing"))
