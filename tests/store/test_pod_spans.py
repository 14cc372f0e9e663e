"""The spans of a pod as one record: the folder holds the same lines as for each span by itself."""

import pytest

from harness.model import PodSpans, Span
from harness.store.folder import RunFolder, encode

AT = 1_767_225_600 * 10**9


def spans_of(phases=("scheduling", "running"), bounds=(AT, AT + 1, AT + 5), **more):
    known = {"run": "r1", "step": "r1-train-1", "task": "train", "node": "steps-0", "source": "simulator"}
    return PodSpans(**(known | more), phases=list(phases), bounds=list(bounds))


@pytest.mark.parametrize(
    "pod",
    [
        spans_of(),
        spans_of(bounds=(AT, AT + 1, None)),
        spans_of(phases=("scheduling",), bounds=(AT, None), node=None),
        spans_of(task='a "quoted" \\ täsk\n', run="läuft", step='"'),
        spans_of(phases=(), bounds=(AT,)),
    ],
    ids=["over", "open", "without a node", "odd texts", "no phase"],
)
def test_its_lines_are_those_of_its_spans(pod):
    assert encode(pod) == b"".join(encode(span) for span in pod.spans())


def test_a_folder_reads_back_the_spans_of_a_pod(tmp_path):
    folder = RunFolder.create(tmp_path, "run")
    with folder.recorder() as recorder:
        recorder.write(spans_of())
    assert folder.records(Span) == list(spans_of().spans())
