import pytest

from harness.model.arguments import ArgumentError, address


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("9646", ("127.0.0.1", 9646)),
        ("0.0.0.0:9646", ("0.0.0.0", 9646)),
        ("[::1]:0", ("::1", 0)),
        ("here:1", ("here", 1)),
    ],
)
def test_an_address_without_a_host_is_of_this_machine_only(text, where):
    assert address(text) == where


@pytest.mark.parametrize("text", [":9646", "a b:1", "x:", "99999", "host", "http://x:1"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises((ArgumentError, ValueError)):
        address(text)
