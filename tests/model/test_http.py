import pytest

from harness.model.http import HttpAnswer, redirection


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (HttpAnswer(302, b"", {"location": "https://dex/login?state=secret"}), "a redirect to https://dex/login"),
        (HttpAnswer(399, b"", {"location": "/a#b?c"}), "a redirect to /a"),
        (HttpAnswer(300, b""), "a redirect to nowhere"),
        (HttpAnswer(301, b"", {"location": "x" * 300}), f"a redirect to {'x' * 200}"),
        (HttpAnswer(200, b"", {"location": "/a"}), ""),
        (HttpAnswer(400, b"", {"location": "/a"}), ""),
    ],
)
def test_a_redirect_is_told_without_its_query(answer, said):
    assert redirection(answer) == said
