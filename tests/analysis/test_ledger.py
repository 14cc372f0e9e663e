import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.ledger import Ledger, in_words, ledger, missing, recovered
from harness.model import Outcome
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from tests.support.timelines import Story

FATES = ("succeeded", "failed", "canceled", "skipped", "in_flight", "rejected", "missed", "lost")
STATES = {"succeeded": SUCCEEDED, "failed": FAILED, "canceled": CANCELED, "skipped": SKIPPED}


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(FATES), min_size=1, max_size=80))
def test_every_arrival_is_counted_exactly_once(tmp_path_factory, fates):
    story = Story(intended=len(fates))
    for seq, fate in enumerate(fates):
        if fate in STATES or fate == "in_flight":
            run = story.submit(seq)
            if fate in STATES:
                story.run(run, 0.0, 5.0, STATES[fate])
        elif fate == "rejected":
            story.submit(seq, outcome=Outcome.REJECTED, status=503, error="busy")
        elif fate == "missed":
            story.submit(seq, lag=None, outcome=Outcome.MISSED, status=None, error="stopped")
    timeline = story.timeline(tmp_path_factory.mktemp("runs"))
    counts = ledger(timeline)
    named = {name: getattr(counts, name) for name in FATES if name != "lost"}
    assert named == {name: fates.count(name) for name in named}
    assert counts.unaccounted == fates.count("lost")
    assert counts.intended == counts.terminal + counts.in_flight + counts.rejected + counts.missed + counts.unaccounted
    assert missing(timeline) == [seq for seq, fate in enumerate(fates) if fate == "lost"]


def test_a_lost_answer_of_a_run_that_exists_counts_as_accepted(tmp_path):
    story = Story(intended=2)
    for seq in range(2):
        story.submit(seq, service=None, outcome=Outcome.REJECTED, status=None, error="no answer within 60 s")
    story.run("found", 0.0, 9.0, name="s0-plant")
    timeline = story.timeline(tmp_path)
    counts = ledger(timeline)
    assert (counts.succeeded, counts.rejected, counts.foreign) == (1, 1, 0)
    assert timeline.runs["run"].tolist() == ["found", ""]


def test_an_answered_rejection_stays_one_even_if_a_run_of_that_name_exists(tmp_path):
    story = Story(intended=1)
    story.submit(0, outcome=Outcome.REJECTED, status=500, error="boom")
    story.run("older", 0.0, 9.0, name="s0-plant")
    counts = ledger(story.timeline(tmp_path))
    assert (counts.accepted, counts.rejected, counts.foreign) == (0, 1, 1)


def test_foreign_runs_are_counted_separately(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 5.0)
    story.run("foreign", 0.0, 6.0)
    assert ledger(story.timeline(tmp_path)).foreign == 1


def test_without_a_load_the_observed_runs_are_the_intended_ones(tmp_path):
    story = Story(started=False)
    story.run("a", 3.0, 9.0, name="nightly")
    story.run("b", 4.0, None)
    timeline = story.timeline(tmp_path)
    counts = ledger(timeline)
    assert (counts.intended, counts.succeeded, counts.in_flight, counts.unaccounted) == (2, 1, 1, 0)
    assert timeline.runs["due_s"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("seqs", "words"),
    [
        ([], ""),
        ([7], "7"),
        ([1, 2, 3], "1, 2, 3"),
        ([4, 5, 6, 7], "4, 5, …, 7"),
        ([2, 9, 11, 13, 15, 17, 40], "2, 9, 11, …, 17, 40"),
    ],
)
def test_evenly_spaced_numbers_are_abbreviated(seqs, words):
    assert in_words(seqs) == words


@given(st.sets(st.integers(0, 60)).map(sorted))
def test_the_abbreviation_expands_to_the_list(seqs):
    told, parts = [], in_words(seqs, most=100).split(", ")
    for k, part in enumerate(parts if seqs else []):
        if part == "…":
            first, second, last = int(parts[k - 2]), int(parts[k - 1]), int(parts[k + 1])
            told += range(second + (second - first), last, second - first)
        else:
            told.append(int(part))
    assert told == seqs


def test_a_long_irregular_list_is_cut():
    assert in_words([k * k for k in range(30)], most=3) == "0, 1, 4, …"


def test_shares_and_sums_follow_from_the_counts():
    counts = Ledger(20, succeeded=3, failed=2, canceled=1, skipped=4, in_flight=5, rejected=2, missed=1)
    assert (counts.terminal, counts.accepted, counts.lost, counts.unaccounted) == (10, 15, 5, 2)
    assert (counts.share(5), Ledger(0, 0, 0, 0, 0, 0, 0, 0).share(0)) == (0.25, 0.0)


def test_without_a_load_of_our_own_the_observed_runs_are_intended(tmp_path):
    story = Story()
    for k in range(3):
        story.run(f"run-{k}", 0.0, 5.0)
    counts = ledger(story.timeline(tmp_path))
    assert (counts.intended, counts.unaccounted) == (3, 0)


@pytest.mark.parametrize(
    ("seqs", "most", "said"),
    [
        ([], 20, ""),
        ([7], 20, "7"),
        ([1, 2, 3], 20, "1, 2, 3"),
        ([1, 2, 3, 4], 20, "1, 2, …, 4"),
        ([0, 1, 3, 5, 7, 9, 20], 20, "0, 1, 3, …, 9, 20"),
        ([1, 5, 6, 9], 3, "1, 5, 6, …"),
        ([1, 5, 6], 3, "1, 5, 6"),
        ([1, 3, 5, 7, 100], 1, "1, 3, …, 7, …"),
    ],
)
def test_numbers_are_listed_and_evenly_spaced_ones_abbreviated(seqs, most, said):
    assert in_words(seqs, most) == said


def test_what_was_added_later_is_told(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 5.0)
    story.event(6.0, "Test", "test", "Recovered", "1 row of worker 0")
    story.event(5.0, "Test", "test", "LateRows", "2 arrivals of worker 1")
    story.event(5.0, "Test", "test", "Note", "something else")
    assert recovered(story.timeline(tmp_path)) == ("2 arrivals of worker 1", "1 row of worker 0")
