import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import ConfigError
from harness.model.units import counted, format_bytes, format_duration, parse_duration, parse_quantity, parse_rate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h", 3600),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("42", 42),
        ("1.5 m", 90),
        ("2d", 172800),
        ("0", 0),
        ("0.5", 0.5),
        ("0" * 62 + "1s", 1),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "rate"), [("2/s", 2), ("120/m", 2), ("500/h", 500 / 3600), ("3", 3), ("0.5 / s", 0.5)]
)
def test_rates(text, rate):
    assert parse_rate(text) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("2", 2), ("128Mi", 2**27), ("1G", 1e9), ("4Ki", 4096), ("1e3", 1000), ("2k", 2000)],
)
def test_quantities(text, value):
    assert parse_quantity(text) == pytest.approx(value)


@pytest.mark.parametrize("parse", [parse_duration, parse_rate, parse_quantity])
@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "s", "1h-"])
def test_an_invalid_quantity_is_a_configuration_error_that_quotes_it(parse, text):
    with pytest.raises(ConfigError, match="is not a"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "kind", "hint"),
    [
        (parse_duration, "a duration", "write it as 90s, 10m, 1h30m or a number of seconds"),
        (parse_rate, "a rate", "write it as 2/s, 120/m or 500/h"),
        (parse_quantity, "a Kubernetes quantity", "write it as 500m, 2, 128Mi or 4Gi"),
    ],
)
@pytest.mark.parametrize(
    ("text", "quoted"), [("soon", "soon"), ("x" * 64, "x" * 64), ("x" * 65, "x" * 64 + "…")]
)  # fmt: skip
def test_what_is_refused_is_quoted_with_the_way_to_write_it(parse, kind, hint, text, quoted):
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert (refused.value.message, refused.value.hint) == (f"'{quoted}' is not {kind}", hint)


@pytest.mark.parametrize("parse", [parse_duration, parse_rate, parse_quantity])
def test_a_whole_file_in_a_cell_is_refused_at_once_and_not_repeated(parse):
    with pytest.raises(ConfigError) as refused:
        parse("1" * 300_000 + "x")
    assert len(refused.value.message) < 120


@pytest.mark.parametrize("parse", [parse_duration, parse_rate, parse_quantity])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan", "inf", "1e999"])
def test_quantities_are_finite(parse, value):
    with pytest.raises(ConfigError, match="is not a"):
        parse(value)


@pytest.mark.parametrize("parse", [parse_duration, parse_rate])
@pytest.mark.parametrize("value", [-1, -0.5, "-1", "-90s"])
def test_durations_and_rates_are_not_negative(parse, value):
    with pytest.raises(ConfigError, match="is not a"):
        parse(value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-1e-9, "0 s"),
        (1e-6, "0.001 ms"),
        (0.00004, "0.04 ms"),
        (0.0012496, "1.2 ms"),
        (0.008333, "8.3 ms"),
        (0.00949, "9.5 ms"),
        (0.0095, "10 ms"),
        (0.0096, "10 ms"),
        (0.0242, "24 ms"),
        (0.25, "250 ms"),
        (0.9, "900 ms"),
        (0.9995, "1 s"),
        (4.024, "4.02 s"),
        (9.995, "10 s"),
        (10.4, "10 s"),
        (-0.3, "-300 ms"),
        (42, "42 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (-3, "-3 s"),
        (3600, "1 h"),
        (120, "2 min"),
        (float("nan"), "unknown"),
        (float("inf"), "unknown"),
    ],
)
def test_durations_for_people(seconds, text):
    assert format_duration(seconds) == text


@given(st.floats(-1e9, 1e9))
def test_formatted_durations_are_short_and_accurate(seconds):
    text = format_duration(seconds)
    assert re.fullmatch(r"-?[\d.]{1,7} (ms|s|min( [\d]+ s)?)|-?[\d,]+ h( \d+ min)?", text)
    units = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}
    parsed = sum(float(n.replace(",", "")) * units[unit] for n, unit in re.findall(r"([\d.,]+) (ms|s|min|h)", text))
    assert parsed == pytest.approx(abs(seconds), rel=0.06, abs=1e-6)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 runs"), (1, "1 run"), (1.0, "1 run"), (2.5, "2.5 runs"), (20_000_000, "20,000,000 runs"),
        (5.048, "5 runs"), (14.85, "14.8 runs"), (1234.56, "1,234.6 runs"), (1.02, "1 run"), (0.05, "0.05 runs"),
    ],
)  # fmt: skip
def test_counts_agree_with_their_noun(count, text):
    assert counted(count, "run") == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (-1024, "-1.0 KiB"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**20, "1.0 MiB"),
     (2**30, "1.0 GiB"), (2**40, "1.0 TiB"), (1.5 * 2**40, "1.5 TiB"), (2**50, "1024.0 TiB")],
)  # fmt: skip
def test_byte_counts_for_people(count, text):
    assert format_bytes(count) == text


@given(st.floats(0, 1e15))
def test_formatted_byte_counts_are_short(count):
    number, unit = format_bytes(count).split()
    assert unit in {"B", "KiB", "MiB", "GiB", "TiB"}
    assert float(number) <= 1024 or unit == "TiB"
