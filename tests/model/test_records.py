from harness.model.records import PodSpans, Span


def test_the_spans_of_a_pod_follow_one_another():
    pod = PodSpans("r", "p", "train", "n1", "kfp", ["start", "running"], [10, 20, None])
    assert list(pod.spans()) == [
        Span("r", "p", "start", 10, 20, "train", 0, "n1", "kfp"),
        Span("r", "p", "running", 20, None, "train", 0, "n1", "kfp"),
    ]
