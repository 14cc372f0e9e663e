"""The same spec and seed give the same bytes: for any prefix, block size, number of processes, and on every machine."""

import hashlib
import io
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.formats import Csv, JsonLines, Parquet
from generators.generate import Job, generate
from generators.sources import Sources
from generators.spec import default_spec
from tests.support.drawing import spec_of
from tests.support.generated import EVERY_KIND, written

FORMATS = {"csv": Csv(), "jsonl": JsonLines(), "parquet": Parquet()}


SPEC = spec_of(EVERY_KIND)


@cache
def whole(form):
    return written(SPEC, 400, form=FORMATS[form])


@settings(max_examples=12, deadline=None)
@given(block=st.integers(1, 450), form=st.sampled_from(sorted(FORMATS)))
def test_the_block_size_does_not_matter(block, form):
    assert written(SPEC, 400, form=FORMATS[form], block=max(block, 20)) == whole(form)


@settings(max_examples=12, deadline=None)
@given(n=st.integers(1, 400), form=st.sampled_from(["csv", "jsonl"]))
def test_fewer_rows_are_a_prefix_of_more(n, form):
    assert whole(form).startswith(written(SPEC, n, form=FORMATS[form]))


@pytest.mark.parametrize("form", FORMATS)
def test_the_number_of_processes_does_not_matter(form):
    spec = default_spec()
    alone = written(spec, 3000, form=FORMATS[form], block=400)
    assert written(spec, 3000, form=FORMATS[form], block=400, processes=2) == alone


def test_another_seed_gives_other_rows():
    assert written(SPEC, 50, seed=8) != written(SPEC, 50)


def test_another_field_does_not_change_the_others():
    one = written(spec_of({"x": {"integer": [1, 10**6]}}), 50).splitlines()
    two = written(spec_of({"x": {"integer": [1, 10**6]}, "y": "uuid"}), 50).splitlines()
    assert [line.rpartition(b",")[0] for line in two] == one


def test_the_bytes_are_the_same_on_every_machine():
    # Pinned: Philox, our own elementary functions and Polars' shortest decimals leave nothing to the machine.
    digest = hashlib.sha256(written(default_spec(), 1000)).hexdigest()
    assert digest == (Path(__file__).parent / "default-seed7-n1000.sha256").read_text().strip()


def test_a_million_rows_begin_like_a_thousand():
    out = io.BytesIO()

    class Enough(Exception):  # noqa: N818  # not an error: the first block says it all
        pass

    def stop(_):
        raise Enough

    with pytest.raises(Enough):
        generate(Job(default_spec(), 7, 1_000_000, Csv(), Sources()), out, stop)
    assert out.getvalue().startswith(written(default_spec(), 1000))
