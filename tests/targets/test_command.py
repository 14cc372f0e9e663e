"""A command as a target: its words, what is wrong with it offline, and how a process becomes a run."""

from dataclasses import replace

import orjson
import pytest

from harness.model.errors import ConfigError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import (
    COMPUTING,
    FAILED,
    PROCESS_CPU_SECONDS,
    PROCESS_PEAK_BYTES,
    QUEUED,
    RUN,
    STARTING,
    SUCCEEDED,
)
from harness.model.records import Event, Sample, Span
from harness.model.scenario import Scenario
from harness.targets import command
from harness.targets.command.ended import Ended
from harness.targets.command.words import filled, placeholders, words_of

S = 10**9
DONE = Ended(exit_code=0, took_s=2.0, cpu_s=1.5, peak_bytes=10**6)


@pytest.mark.parametrize(("line", "values", "argv"), [
    ("step.py --n {n}", {"n": "4"}, ["step.py", "--n", "4"]),
    ("step.py '{a} and {b}'", {"a": "x", "b": "y"}, ["step.py", "x and y"]),
    ("step.py --at={a}", {"a": "two words"}, ["step.py", "--at=two words"]),
    ("step.py {a}", {"a": "$(reboot); `reboot` && reboot | tee > x"}, ["step.py", "$(reboot); `reboot` && reboot | tee > x"]),
    ("step.py {a}", {"a": "{b} 'quoted"}, ["step.py", "{b} 'quoted"]),
    ("step.py {a}", {"a": ""}, ["step.py", ""]),
    ("step.py '{{\"n\": {n}}}'", {"n": "4"}, ["step.py", '{"n": 4}']),
])  # fmt: skip
def test_a_value_stays_in_its_word_and_no_shell_sees_it(line, values, argv):
    assert filled(words_of(line), values) == argv


@pytest.mark.parametrize(("line", "message"), [
    ("", "there is no command"),
    ("''", "there is no command"),
    ("step.py 'open", "No closing quotation"),
    ("step.py {", "double a brace"),
    ("step.py {}", "'{}' is not a placeholder"),
    ("step.py {n:>9999999999}", "is not a placeholder"),
    ("step.py {n!r}", "is not a placeholder"),
    ("step.py {n.__class__}", "'{n.__class__}' is not a placeholder"),
    ("no-such-program-here {n}", "there is no program no-such-program-here"),
    ("{place}/notes.txt", "can't be executed"),
    ("{place}", "is a folder"),
])  # fmt: skip
def test_a_command_that_cannot_work_is_refused_offline(tmp_path, line, message):
    (tmp_path / "notes.txt").write_text("no program")
    with pytest.raises(ConfigError, match=r"(?s).*") as raised:
        command.prepare({"command": line.replace("{place}", str(tmp_path))}, simulated=False)
    assert message in str(raised.value)


def test_each_placeholder_is_an_input_and_those_of_all_scenarios_need_no_column():
    assert placeholders(words_of("sh {id} {b} {scenario_name} {a}{b}")) == ("b", "a")


@pytest.mark.parametrize(("line", "title"), [
    ("python examples/step.py --n {n}", "step.py"), ("/bin/sleep 60", "sleep"), ("python -S -u step.py a.csv", "step.py"), ("convert a.png b.jpg", "convert"),
])  # fmt: skip
def test_a_command_is_called_by_its_script_or_program(line, title):
    assert command.title_of(words_of(line)) == title


def test_a_submission_fills_in_what_the_scenario_says():
    asked = []

    def exchange(request: HttpRequest) -> HttpAnswer:
        asked.append(orjson.loads(request.body))
        return HttpAnswer(200, orjson.dumps({"exit_code": 0, "took_s": 1.0, "cpu_s": 0.5, "peak_bytes": 1}))

    target = command.CommandTarget(words_of("step.py {id} {scenario_name} {n} {items}"), 60.0)
    run = target.submit(Scenario("7", "big", {"n": 5, "items": [1, 2]}, {}), exchange)
    assert asked == [{"argv": ["step.py", "7", "big", "5", "[1,2]"], "time_limit_s": 60.0}]
    assert run.state == SUCCEEDED


@pytest.mark.parametrize(("changes", "state", "error"), [
    ({}, SUCCEEDED, ""),
    ({"exit_code": 3}, FAILED, "exit code 3"),
    ({"exit_code": 3, "errors": "a\nb\n\nc\nd\n"}, FAILED, "exit code 3: b · c · d"),
    ({"exit_code": -9}, FAILED, "ended by signal 9"),
    ({"exit_code": 0, "timed_out": True}, FAILED, "it was not over after 60 s (--answer-timeout) and was ended"),
    ({"exit_code": -9, "timed_out": True, "killed": True}, FAILED, "it was not over after 60 s (--answer-timeout), ignored SIGTERM and was killed"),
    ({"remarks": ("warm", "slow")}, SUCCEEDED, "warm; slow"),
    ({"left_behind": 1}, SUCCEEDED, "a process was left behind and ended"),
    ({"left_behind": 2, "unreadable": 1}, SUCCEEDED, "2 processes were left behind and ended; 1 line of phases could not be read"),
    ({"exit_code": 1, "unreadable": 3}, FAILED, "exit code 1; 3 lines of phases could not be read"),
])  # fmt: skip
def test_how_a_process_ended_is_how_its_run_ended(changes, state, error):
    run = replace(DONE, **changes).as_run("r", "step.py", 60.0)
    assert (run.state, run.error) == (state, error)


def test_the_records_fill_the_run_up_to_its_end():
    ended = Ended(0, 2.0, 1.5, 10**6, machine="worker-1", phases=(("read", 0.5), ("wait for a slot", 0.25)))
    records = list(ended.as_run("r", "step.py", 60.0).records(10 * S, 13 * S, "command"))
    spans = [(r.task, r.phase, r.started_at / S, r.ended_at / S) for r in records if isinstance(r, Span)]
    assert {r.node for r in records if isinstance(r, Span) and r.step} == {"worker-1"}, "for capacity by machine"
    assert spans == [
        ("step.py", RUN, 10.0, 13.0),
        ("step.py", STARTING, 10.0, 11.0),
        ("rest of step.py", COMPUTING, 11.0, 12.25),
        ("read", COMPUTING, 12.25, 12.75),
        ("wait for a slot", QUEUED, 12.75, 13.0),
    ]
    assert {(r.metric, r.value) for r in records if isinstance(r, Sample)} == {
        (PROCESS_CPU_SECONDS, 1.5), (PROCESS_PEAK_BYTES, 10.0**6),
    }  # fmt: skip
    assert [r.reason for r in records if isinstance(r, Event)] == [SUCCEEDED]


def test_phases_longer_than_the_run_are_cut_at_its_end():
    ended = Ended(0, 1.0, 1.0, 1, phases=(("read", 5.0), ("write", 5.0)))
    spans = [r for r in ended.as_run("r", "s", 60.0).records(0, 2 * S, "command") if isinstance(r, Span)]
    assert max(span.ended_at for span in spans) == 2 * S
    assert all(span.started_at <= span.ended_at for span in spans)
