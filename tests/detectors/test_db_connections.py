"""A database without a free connection, by its own counter; what clients were told in words comes first."""

import pytest

from harness.detectors import diagnose
from harness.detectors.stores import db_connections
from tests.support.injected.control_plane import crowded, db
from tests.support.injected.loads import REFUSING, steady, watched

NAME = db_connections.NAME


def test_the_exporters_counter_names_it_and_says_where_it_is_from(tmp_path):
    (finding,) = (each for each in diagnose(crowded(steady()).timeline(tmp_path)).findings if each.name == NAME)
    assert finding.title == "The database has no connection left: it refused some"
    assert [each.statement for each in finding.evidence] == [
        "mysqld_exporter mysql:9104 counted up to 2 refused connections a second",
        "it counted some 60 s into the test for the first time, 75 s into the test for the last",
        "at most 151 of 151 connections were open when it was scraped",
    ]


def test_refused_requests_are_the_databases_and_not_counted_twice(tmp_path):
    """Of 1 request a second 0.08 ended in an internal error; the database refused twice as many connections."""
    (finding,) = diagnose(crowded(watched(REFUSING), refused=0.16).timeline(tmp_path)).findings[:1]
    assert finding.title == "The database has no connection left: 8.0% of the requests to create runs were rejected"


@pytest.mark.parametrize(("refused", "names"), [(0.16, False), (0.02, True)])
def test_what_the_database_does_not_account_for_is_still_rejected_by_the_api_server(refused, names, tmp_path):
    rates = {("CreateRun", "OK"): 0.92, ("CreateRun", "Internal"): 0.08}
    found = diagnose(crowded(watched(rates), refused=refused).timeline(tmp_path)).findings
    assert ("api-errors" in {each.name for each in found}) is names


def test_words_and_counters_make_one_finding_which_quotes_the_words(tmp_path):
    diagnosis = diagnose(crowded(db("Error 1040: Too many connections")).timeline(tmp_path))
    (finding,) = (each for each in diagnosis.findings if each.name == NAME)
    assert "Error 1040" in finding.evidence[0].statement


def test_with_words_alone_it_is_not_also_called_not_judged(tmp_path):
    diagnosis = diagnose(db("Error 1040: Too many connections").timeline(tmp_path))
    assert NAME in {each.name for each in diagnosis.findings}
    assert NAME not in {each.name for each in diagnosis.not_judged}


def test_one_of_several_databases_may_be_another_one_than_the_platforms(tmp_path):
    story = crowded(crowded(steady()), refused=0.0, instance="other:9104")
    (finding,) = db_connections.detect(story.timeline(tmp_path))
    assert finding.confidence < 0.9
    assert "2 databases are measured: whether this is the platform's is not known" in {
        each.statement for each in finding.evidence
    }


@pytest.mark.parametrize(
    "story", [crowded(steady(), refused=0.0), crowded(steady(), since=-90)], ids=["none", "before"]
)
def test_else_there_is_nothing_to_say(story, tmp_path):
    assert db_connections.detect(story.timeline(tmp_path)) == []
