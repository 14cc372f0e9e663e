"""Benchmarks measure a command, and not themselves."""

import subprocess
import sys

import pytest

from tests.support.command_cost import measured


def test_the_memory_of_the_one_who_measures_is_not_counted():
    own = bytearray(b"x") * 300_000_000
    assert measured([sys.executable, "-c", "pass"])[2] < 0.1
    assert measured([sys.executable, "-c", "bytearray(b'x') * 200_000_000"])[2] > 0.2
    assert len(own) == 300_000_000


def test_a_command_that_fails_is_not_measured():
    with pytest.raises(subprocess.CalledProcessError):
        measured([sys.executable, "-c", "raise SystemExit(3)"])
