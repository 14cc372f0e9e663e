"""What a web form may set, and what its page says of the files it names."""

import argparse

import pytest

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.plan.form import Form
from harness.plan.form_files import FormFiles
from harness.plan.options import check_texts, declared, files_of_schedules, formats_of_files, settings
from harness.plan.validate import OverLimitError, check
from harness.targets.discovery import find

LOCUSTS = {"host": "", "num_users": 1, "html_file": None, "csv_prefix": None, "headless": False, "logfile": None}
SECRETS = ("hunter2", "pa55word", "tops3cret", "k3yring")


class Page:
    """A process with a form: its options as they were given on the command line, and as the form set them."""

    def __init__(self, folder, target="kfp", **given):
        self.platform = find(target)
        self.target = target
        known = declared(self.platform)
        self.options = {**LOCUSTS, **{each.dest: each.default for each in known}, **given}
        shown = {"user_count", "host", *(each.dest for each in known if each.in_form)}
        files = FormFiles.of(str(folder))
        self.form = Form(shown, known, formats_of_files(self.platform), self.options, files)

    def send(self, **fields):
        accepted = self.form.accept(fields)
        self.options.update(accepted)
        return accepted

    def error(self):
        """What the page says of a test with these options, and what the terminal says."""
        options = argparse.Namespace(**self.options)
        read = files_of_schedules()
        try:
            check_texts(options, self.platform)
            given = settings(options, "", self.platform)
            read = None
            check(given, self.target, self.platform)
        except ConfigError as error:
            return str(self.form.discreet(error, read)), str(error)
        raise AssertionError("there was no error")


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda target="kfp", **given: Page(tmp_path, target, **given)


GUARDED = ("token_file", "runs_dir", "redact", "yes", "max_runs", "insecure", "prometheus", "metrics", "collector_option",
           "kube_context", "store_probe", "web_files", "web_host_name")  # fmt: skip


@pytest.mark.parametrize("field", [*GUARDED, "html_file", "csv_prefix", "headless", "logfile", "num_users"])
def test_what_the_form_does_not_show_it_can_not_set(page, field):
    for name in (field, field.replace("_", "-")):
        with pytest.raises(ConfigError, match="can't be set in the form"):
            page().send(**{"runs": "5", name: "x"})


def test_fields_of_the_form_are_set_and_unknown_ones_left_out(page):
    sent = page().send(user_count="2", host="http://x", runs="5", fault="store-full", anything="x")
    assert sent == {"user_count": "2", "host": "http://x", "runs": "5", "fault": "store-full"}


@pytest.mark.parametrize("field", ["pipeline", "scenarios", "schedule_file", "baseline", "simulate"])
def test_fields_that_name_files_take_those_of_the_folder_only(page, tmp_path, field):
    for name in ("in.yaml", "in.csv", "in.json"):
        (tmp_path / name).touch()
    name = {"scenarios": "in.csv", "baseline": "in.json"}.get(field, "in.yaml")
    assert page().send(**{field: name}) == {field: str(tmp_path / name)}
    for outside in ("/proc/self/environ", "/etc/shadow", "../x.csv", "missing.csv", "~/.kube/config"):
        with pytest.raises(ConfigError, match="the form may use no file"):
            page().send(**{field: outside})


def test_what_the_command_line_named_may_lie_anywhere(page):
    assert page(pipeline="/elsewhere/p.yaml").send(pipeline="/elsewhere/p.yaml", scenarios="") == {
        "pipeline": "/elsewhere/p.yaml", "scenarios": "",
    }  # fmt: skip
    with pytest.raises(ConfigError):
        page(pipeline="/elsewhere/p.yaml").send(pipeline="/elsewhere/q.yaml")


def test_names_that_are_no_files_are_left_as_they_are(page):
    profile, some_id = "hetida-pattern-1", "33b7a9d1-6e0f-4b8a-9f57-0e4b6d3c2f11"
    assert page("hetida").send(simulate=profile, transformation=some_id) == {
        "simulate": profile, "transformation": some_id,
    }  # fmt: skip
    for name in ("/etc/x", "secret", "x.json"):
        with pytest.raises(ConfigError):
            page("hetida").send(transformation=name)
    for name in ("..", "x.yaml", "a/b"):
        with pytest.raises(ConfigError):
            page("hetida").send(simulate=name)


def test_a_refused_form_changes_nothing(page, tmp_path):
    (tmp_path / "in.csv").write_text("hunter2")
    asked = page()
    with pytest.raises(ConfigError):
        asked.send(scenarios="in.csv", runs_dir="x")
    error = ConfigError("in.csv, row 3: 'hunter2' is not a number")
    assert asked.form.discreet(error) is error


WRONG_FILES = {
    "cells": ("scenarios", "x.csv", "id,scenario_name,data_multiplier\nhunter2,a,pa55word\nhunter2,b,tops3cret\n"),
    "columns": ("scenarios", "x.csv", "id,scenario_name,dataset,hunter2\n1,pa55word,tops3cret,k3yring\n1,pa55word\n"),
    "header": ("scenarios", "x.csv", "hunter2,pa55word\n"),
    "not UTF-8": ("scenarios", "x.csv", b"id,hunter2\n\xff,pa55word\n"),
    "not a CSV": ("scenarios", "x.csv", 'id,scenario_name\n"hunter2"pa55word\n'),
    "not YAML": ("pipeline", "x.yaml", "hunter2: [pa55word\ntops3cret: *k3yring\n"),
    "an alias": ("pipeline", "x.yaml", "hunter2: *k3yring\n"),
    "a tag": ("pipeline", "x.yaml", "hunter2: !pa55word x\n"),
    "no pipeline": ("pipeline", "x.yaml", "hunter2: pa55word\n"),
    "a text": ("pipeline", "x.yaml", "hunter2"),
    "a profile's key": ("simulate", "x.yaml", "hunter2: pa55word\n"),
    "a profile's value": ("simulate", "x.yaml", "pools: hunter2\n"),
    "a stage": ("schedule_file", "x.yaml", "- {schedule: hunter2}\n"),
    "a stage's option": ("schedule_file", "x.yaml", "- {schedule: constant, rate: hunter2, for: 1m}\n"),
    "a stage's key": ("schedule_file", "x.yaml", "- {schedule: constant, pa55word: 3}\n"),
    "a report": ("baseline", "x.json", '{"hunter2": "pa55word"}'),
    "a torn report": ("baseline", "x.json", '{"hunter2": "pa55word'),
    "a report's verdict": (
        "baseline", "x.json",
        '{"schema_version": 1, "batches_s": [], "ledger": {"failed": "pa55word"}, "validity": {"verdict": "tops3cret"}}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_FILES)
def test_the_page_repeats_nothing_of_a_file_that_the_form_named(page, tmp_path, case):
    from harness.simulator.profile.file import load_profile

    field, name, content = WRONG_FILES[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    asked = page(schedule="stages" if field == "schedule_file" else "spread")
    asked.send(**{field: name})
    if field == "simulate":  # the platform's own process reads it
        with pytest.raises(ConfigError) as raised:
            load_profile(str(tmp_path / name))
        shown = str(asked.form.discreet(raised.value))
    else:
        shown, _ = asked.error()
    assert not [secret for secret in SECRETS if secret in shown]
    assert f"--{field.replace('_', '-')} {name}" in shown
    assert "the terminal" in shown


@pytest.mark.parametrize(
    ("case", "where"),
    [("columns", "row 1"), ("cells", "row 2, row 3"), ("a stage's option", "stage 1"), ("a profile's key", "line 1"), ("not YAML", "line 2")],
)  # fmt: skip
def test_the_page_says_where_the_file_is_wrong(page, tmp_path, case, where):
    from harness.simulator.profile.file import load_profile

    field, name, content = WRONG_FILES[case]
    (tmp_path / name).write_text(content)
    asked = page(schedule="stages" if field == "schedule_file" else "spread")
    asked.send(**{field: name})
    if field == "simulate":
        with pytest.raises(ConfigError) as raised:
            load_profile(str(tmp_path / name))
        shown = str(asked.form.discreet(raised.value))
    else:
        shown, _ = asked.error()
    assert f": see {where}\n" in shown


def test_of_files_that_the_command_line_named_the_page_says_everything(page, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,scenario_name,dataset\n")
    asked = page(scenarios=str(path))
    asked.send(scenarios=str(path), runs="5")
    shown, told = asked.error()
    assert shown == told
    assert "dataset" in told


def test_errors_that_concern_no_file_are_shown_as_they_are(page, tmp_path):
    (tmp_path / "x.csv").write_text("id,scenario_name\n")
    asked = page()
    asked.send(scenarios="x.csv", runs="many")
    assert asked.error()[0].startswith("--runs: 'many' is not a whole number")
    asked.send(runs="0")
    assert "--schedule spread" in asked.error()[0]
    for error in (TargetUnreachableError("no answer"), OverLimitError("5 runs")):
        assert asked.form.discreet(error) is error


def test_only_the_file_at_fault_is_named(page, tmp_path):
    for name in ("a.csv", "b.yaml"):
        (tmp_path / name).touch()
    asked = page()
    asked.send(scenarios="a.csv", pipeline="b.yaml")
    assert "--pipeline" not in asked.form.discreet(ConfigError(f"{tmp_path}/a.csv is empty")).message
    assert "--scenarios a.csv" in asked.form.discreet(ConfigError(f"{tmp_path}/a.csv is empty")).message
    assert "--pipeline b.yaml" in asked.form.discreet(ConfigError("they don't fit")).message


def test_an_unexpected_error_tells_as_little(page, tmp_path):
    (tmp_path / "a.csv").touch()
    asked = page()
    asked.send(scenarios="a.csv")
    told = asked.form.discreet(ValueError("invalid literal: 'hunter2'"))
    assert isinstance(told, ConfigError)
    assert told.message == "the test can't start with --scenarios a.csv"


def test_a_file_is_forgotten_when_the_field_is_emptied(page, tmp_path):
    (tmp_path / "a.csv").touch()
    asked = page()
    asked.send(scenarios="a.csv")
    asked.send(scenarios="")
    error = ConfigError("row 3: 'x'")
    assert asked.form.discreet(error) is error


def test_every_option_that_names_a_file_says_so():
    """A new option that is read as a path and that the form shows would let the form read any file."""
    from pathlib import Path

    for target in ("kfp", "hetida"):
        for option in declared(find(target)):
            names_path = option.parse is Path or "(IR YAML)" in option.help or "JSON file" in option.help
            assert not (names_path and option.in_form) or option.file, option.name


def test_errors_name_fields_by_their_labels(page):
    form = page().form
    assert form.in_words("--max-error-ratio: 'x' is not a share") == "Max Error Ratio: 'x' is not a share"
    assert form.in_words("start Locust with --web-files DIR") == "start Locust with --web-files DIR", "not in the form"
