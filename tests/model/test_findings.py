from harness.model.findings import JudgedWithLess, Lack, NotJudged, Validity, by_sources

CPU, STORE = Lack("node cpu", "metrics-server"), Lack("free space", "kubelets")


def test_detectors_are_grouped_by_what_would_show_what_they_lacked():
    found = by_sources(
        [
            NotJudged("a", "", (CPU,)), JudgedWithLess("b", (CPU, STORE, CPU)), NotJudged("c", "no runs"),
            JudgedWithLess("d", (CPU,)),
        ]
    )  # fmt: skip
    assert found == {"metrics-server": ["a", "d"], "metrics-server and kubelets": ["b"], "": ["c"]}


def test_a_source_that_is_needed_anyway_is_no_alternative():
    either, cluster = Lack("free space", "a cluster or Prometheus"), Lack("pods", "a cluster")
    probe = Lack("requests", "Prometheus or a probe")
    assert list(by_sources([NotJudged("a", "", (either, cluster, probe))])) == ["a cluster, and Prometheus or a probe"]
    assert list(by_sources([NotJudged("a", "", (either,))])) == ["a cluster or Prometheus"]


def test_a_test_is_valid_while_nothing_speaks_against_it():
    assert Validity().valid
    assert not Validity(("late",)).valid
