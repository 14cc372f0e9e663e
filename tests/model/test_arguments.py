import time

import pytest

from harness.model import arguments
from harness.model.arguments import ArgumentError, address


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("9646", ("127.0.0.1", 9646)),
        ("0.0.0.0:9646", ("0.0.0.0", 9646)),
        ("[::1]:0", ("::1", 0)),
        ("here:1", ("here", 1)),
        ("here:65535", ("here", 65535)),
        (f"{'h' * 253}:1", ("h" * 253, 1)),
    ],
)
def test_an_address_without_a_host_is_of_this_machine_only(text, where):
    assert address(text) == where


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("duration", "1h30m", 5400.0),
        ("duration", "0", 0.0),
        ("duration_above_0", "0.5s", 0.5),
        ("rate_above_0", "120/m", 2.0),
        ("rate_above_0", "0.5", 0.5),
        ("count", "10_000", 10_000),
        ("count", "1", 1),
        ("port", "0", 0),
        ("port", "65535", 65535),
        ("count_or_0", "0", 0),
        ("amount", "0", 0.0),
        ("amount", "1e9", 1e9),
        ("share", "0", 0.0),
        ("share", "1", 1.0),
    ],
)
def test_a_text_becomes_a_value(kind, text, value):
    assert getattr(arguments, kind)(text) == value


DURATION = "write it as 90s, 10m, 1h30m or a number of seconds"
ADDRESS = "is not an address to listen on: write it as 9646 or 0.0.0.0:9646"


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("duration", "long", f"'long' is not a duration: {DURATION}"),
        ("duration_above_0", "0s", "0s is not above 0: give a larger value"),
        ("duration_above_0", "long", f"'long' is not a duration: {DURATION}"),
        ("rate_above_0", "0/s", "0/s is not above 0: give a larger value"),
        ("rate_above_0", "fast", "'fast' is not a rate: write it as 2/s, 120/m or 500/h"),
        ("count", "0", "0 is not above 0: give a larger value"),
        ("port", "-1", "-1 is not a port: give a number from 0 to 65535"),
        ("port", "65536", "65536 is not a port: give a number from 0 to 65535"),
        ("count_or_0", "-1", "-1 is below 0"),
        ("amount", "-0.1", "-0.1 is not a number from 0 on"),
        ("amount", "inf", "inf is not a number from 0 on"),
        ("amount", "nan", "nan is not a number from 0 on"),
        ("share", "1.1", "1.1 is not a number from 0 to 1"),
        ("share", "-0.1", "-0.1 is not a number from 0 to 1"),
        ("address", ":9646", f":9646 {ADDRESS}"),
        ("address", "a b:1", f"a b:1 {ADDRESS}"),
        ("address", f"{'h' * 254}:1", f"{'h' * 254}:1 {ADDRESS}"),
    ],
)
def test_another_text_is_refused_on_one_line(kind, text, said):
    with pytest.raises(ArgumentError) as refused:
        getattr(arguments, kind)(text)
    assert str(refused.value) == said


NOW = 1_795_820_400 * 10**9  # 2026-11-27 23:00 UTC
MINUTE = 60 * 10**9


@pytest.mark.parametrize(
    ("text", "zone", "at"),
    [
        ("8h ago", "UTC", NOW - 480 * MINUTE),
        ("90m ago", "UTC", NOW - 90 * MINUTE),
        ("22:30", "UTC", NOW - 30 * MINUTE),
        ("23:30", "UTC", NOW - (24 * 60 - 30) * MINUTE),  # yesterday's
        ("23:30", "Europe/Berlin", NOW - 30 * MINUTE),
        ("2026-11-27 23:30", "Europe/Berlin", NOW - 30 * MINUTE),
        ("2026-11-27T22:30:00Z", "Europe/Berlin", NOW - 30 * MINUTE),
        ("2026-11-27T22:30:00.5+00:00", "UTC", NOW - 30 * MINUTE + 5 * 10**8),
    ],
)
def test_an_instant_is_utc_local_or_ago(text, zone, at, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert arguments.instant(text, NOW) == at
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["25:00", "yesterday", "long ago", "", "9999-01-01", "400000d ago", "-5h ago"])
def test_what_is_no_instant_is_refused(text):
    with pytest.raises(ArgumentError, match="is not an instant: write it as"):
        arguments.instant(text, NOW)
