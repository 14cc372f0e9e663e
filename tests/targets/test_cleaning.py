import pytest

from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpAnswer
from harness.targets.cleaning import Cleaned, clean_up
from harness.targets.kfp import KfpTarget
from harness.targets.target import CleansUp, Cleanup, RejectedError

TARGET = KfpTarget({})


class Platform:
    """Answers each request as a table says, and keeps what was asked for."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.slept = 0.0

    def __call__(self, request):
        self.asked.append(f"{request.method} {request.path}")
        answer = self.answers.pop(0) if self.answers else 200
        if answer is None:
            raise TargetUnreachableError("timed out")
        told = answer if isinstance(answer, tuple) else (answer, "busy")
        return HttpAnswer(told[0], f'{{"message": "{told[1]}"}}'.encode())

    def sleep(self, seconds):
        self.slept += seconds


def clean(how, runs, *answers, rate=10.0):
    platform = Platform(*answers)
    return clean_up(TARGET, runs, how, platform, rate=rate, sleep=platform.sleep), platform


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        (Cleanup.TERMINATE, ["POST /apis/v2beta1/runs/b:terminate"]),
        (
            Cleanup.ARCHIVE,
            [
                "POST /apis/v2beta1/runs/a:archive",
                "POST /apis/v2beta1/runs/b:terminate",
                "POST /apis/v2beta1/runs/b:archive",
            ],
        ),
        (
            Cleanup.DELETE,
            ["DELETE /apis/v2beta1/runs/a", "POST /apis/v2beta1/runs/b:terminate", "DELETE /apis/v2beta1/runs/b"],
        ),
    ],
)
def test_running_runs_are_terminated_first(how, asked):
    _, platform = clean(how, [("a", True), ("b", False)])
    assert platform.asked == asked


def test_the_rate_is_bounded():
    cleaned, platform = clean(Cleanup.DELETE, [(str(k), True) for k in range(50)], rate=20.0)
    assert platform.slept == pytest.approx(50 / 20)
    assert cleaned == Cleaned(50)


def test_failures_are_retried_and_missing_runs_count_as_cleaned():
    cleaned, platform = clean(Cleanup.DELETE, [("a", True), ("b", True)], 503, None, 200, 404)
    assert cleaned == Cleaned(2)
    assert len(platform.asked) == 4


def test_persistent_failures_are_reported_and_do_not_stop_the_rest():
    cleaned, _ = clean(Cleanup.DELETE, [("a", True), ("b", True)], 503, 503, 503, 200)
    assert cleaned == Cleaned(2, 1, "a: busy")
    assert str(cleaned) == "1 runs were cleaned up, 1 failed: a: busy"


def test_a_platform_that_is_gone_is_not_asked_about_every_run():
    runs = [(str(k), True) for k in range(1000)]
    cleaned, platform = clean(Cleanup.DELETE, runs, *[None] * 3000)
    assert (cleaned.runs, cleaned.failed) == (1000, 1000)
    assert len(platform.asked) == 3 * 3
    cleaned, platform = clean(Cleanup.DELETE, runs, *[None] * 6, 200, *[None] * 6, 503, 503, 503)
    assert cleaned.failed == 5


def test_rejected_requests_are_not_retried():
    cleaned, platform = clean(Cleanup.ARCHIVE, [("a", True)], 403)
    assert cleaned.failed == 1
    assert len(platform.asked) == 1
    _, platform = clean(Cleanup.ARCHIVE, [("a", True)], 429, 200)
    assert len(platform.asked) == 2


def test_terminating_a_run_that_has_ended_is_not_an_error():
    over = 400, "Failed to terminate run b: Failed to terminate a run b. Row not found"
    cleaned, platform = clean(Cleanup.TERMINATE, [("b", False)], over)
    assert cleaned == Cleaned(1)
    assert len(platform.asked) == 1


def test_kfp_can_clean_up():
    assert isinstance(TARGET, CleansUp)
    with pytest.raises(RejectedError):
        TARGET.clean("a", Cleanup.ARCHIVE, Platform(500))
