"""What every schedule keeps to. A new one adds its row to `EXAMPLES`, and to `ANY` if it is open."""

import argparse
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import ConfigError
from harness.model.schedules import (
    Burst,
    Concurrency,
    Constant,
    Poisson,
    Ramp,
    Replay,
    Schedule,
    Spread,
    Stages,
    find_kind,
    from_mapping,
    in_words,
    kinds,
    registry,
    schedule_options,
    to_mapping,
)
from harness.plan.options import SCHEDULE, settings
from harness.targets import kfp

# Any schedule of each open kind.
simple: dict[str, st.SearchStrategy[Schedule]] = {
    "constant": st.builds(Constant, st.floats(0.01, 50), st.floats(0.1, 50)),
    "spread": st.builds(Spread, st.integers(1, 200), st.floats(0.1, 1e4), st.floats(0, 1)),
    "burst": st.builds(Burst, st.integers(1, 50), st.floats(0.1, 100), st.integers(1, 5), st.floats(0, 0.1)),
    "poisson": st.builds(Poisson, st.floats(0.01, 50), st.floats(0.1, 50)),
    "ramp": st.builds(Ramp, st.floats(0.01, 50), st.floats(0.0, 50), st.floats(0.1, 50)),
}
ANY: dict[str, st.SearchStrategy[Schedule]] = simple | {
    "stages": st.builds(Stages, st.lists(st.one_of(*simple.values()), min_size=1, max_size=4).map(tuple)),
    "replay": st.builds(Replay, st.lists(st.floats(0, 1e6), min_size=1).map(sorted).map(tuple)),
}
# Of each kind: its options as they are typed, and the content of its file.
EXAMPLES: dict[str, tuple[dict[str, str], str]] = {
    "constant": ({"rate": "120/m", "for": "90s"}, ""),
    "spread": ({"runs": "30", "over": "1h", "jitter": "0.2"}, ""),
    "burst": ({"runs": "5", "every": "10m", "times": "3", "ramp-in": "2s"}, ""),
    "poisson": ({"rate": "500/h", "for": "1h"}, ""),
    "ramp": ({"rate": "1/s..5/s", "for": "1m"}, ""),
    "stages": ({}, "- {schedule: burst, runs: 5}\n- {schedule: poisson, rate: 1/s, for: 10s}\n"),
    "replay": ({}, "due_s\n0\n2.5\n2.5\n"),
    "concurrency": ({"runs": "9", "for": "1m"}, "- {users: 3, for: 1m}\n- {users: 5}\n"),
}
ALL = sorted(kinds())
OPEN = [name for name in ALL if name != "concurrency"]


def example(name: str, place: Path) -> Schedule | Concurrency:
    """The schedule as a user gets it from the command line."""
    texts, content = EXAMPLES[name]
    if content:
        (place / "file").write_text(content)
        texts = texts | {"schedule-file": str(place / "file")}
    given = {option.replace("-", "_"): text for option, text in texts.items()}
    return settings(argparse.Namespace(schedule=name, **given), "", kfp).schedule


def test_every_schedule_has_its_row_here() -> None:
    assert set(EXAMPLES) == set(ALL)
    assert set(ANY) == set(OPEN)


@pytest.mark.parametrize("name", ALL)
def test_its_options_make_it(name: str, tmp_path: Path) -> None:
    schedule = example(name, tmp_path)
    assert isinstance(schedule, find_kind(name))  # type: ignore[arg-type]  # a kind is a class
    assert schedule.name == name
    assert name in SCHEDULE.choices


@pytest.mark.parametrize("name", ALL)
def test_its_options_are_declared(name: str) -> None:
    options = {option.name: option for option in find_kind(name).OPTIONS}
    assert set(EXAMPLES[name][0]) <= set(options)
    assert bool(EXAMPLES[name][1]) == any(option.file for option in options.values())
    registered = {option.name: option for option in schedule_options()}
    for option in options.values():
        assert option.help
        assert f"{name}" in registered[option.name].help, "the help says which schedules read it"
        assert option.default == registered[option.name].default, "one option, one default"


@pytest.mark.parametrize("name", ALL)
def test_its_arrivals_are_described(name: str, tmp_path: Path) -> None:
    assert find_kind(name).SUMMARY
    assert in_words(to_mapping(example(name, tmp_path))).startswith(("burst, runs 5 then poisson", name))


@pytest.mark.parametrize("name", OPEN)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_offsets_never_decrease_and_repeat_with_the_seed(name: str, data: st.DataObject, seed: int) -> None:
    schedule = data.draw(ANY[name])
    offsets = list(schedule.offsets(seed))
    assert offsets == sorted(offsets)
    assert offsets == list(schedule.offsets(seed))
    assert all(offset >= 0 for offset in offsets)


@pytest.mark.parametrize("name", OPEN)
@given(data=st.data(), seed=st.integers(0, 99))
def test_it_comes_back_from_the_manifest(name: str, data: st.DataObject, seed: int) -> None:
    schedule = data.draw(ANY[name])
    if isinstance(schedule, Replay):
        with pytest.raises(ConfigError, match="not in the manifest"):
            from_mapping(to_mapping(schedule))
        return
    again = from_mapping(to_mapping(schedule))
    assert again == schedule
    assert list(again.offsets(seed)) == list(schedule.offsets(seed))  # type: ignore[union-attr]  # it is open


def test_a_closed_schedule_comes_back_from_the_manifest(tmp_path: Path) -> None:
    levels = example("concurrency", tmp_path)
    for schedule in (levels, Concurrency(levels.levels[:1], 2.0)):  # type: ignore[union-attr]  # it is closed
        assert from_mapping(to_mapping(schedule)) == schedule
        assert to_mapping(schedule)["model"] == "closed"


@given(st.one_of(*ANY.values()), st.one_of(*ANY.values()), st.one_of(*ANY.values()))
def test_a_stage_begins_when_the_length_of_the_one_before_is_over(a: Schedule, b: Schedule, c: Schedule) -> None:
    flat, nested = Stages((a, b, c)), Stages((Stages((a, b)), c))
    assert flat.length_s == nested.length_s == pytest.approx(a.length_s + b.length_s + c.length_s)
    first = list(islice(a.offsets(3), 20))
    assert list(islice(flat.offsets(3), len(first))) == first


def test_a_third_partys_schedule_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "tides"

        def load(self) -> type[Constant]:
            return Constant

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] * (group == "pipeswarm.schedules"))
    kinds.cache_clear()
    try:
        assert find_kind("tides") is Constant
        assert "tides" in {option.name: option for option in schedule_options()}["rate"].help
    finally:
        kinds.cache_clear()


def test_an_unknown_schedule_is_refused_with_the_list() -> None:
    with pytest.raises(ConfigError, match=r"no schedule 'moonlight'[^·]*spread, burst"):
        find_kind("moonlight")
