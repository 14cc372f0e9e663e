"""Definitions made from the schema of specs: each is drawn from, or refused in one sentence."""

import contextlib
import io
import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from generators.cli import main
from generators.kinds import kinds
from generators.schema import SPEC
from generators.spec import OPTIONS
from tests.support.mutations import WEIRD

PLAUSIBLE = (
    "name",
    "uuid",
    "sequence",
    "a",
    1,
    2.5,
    [1, 10],
    ["a", "b"],
    {"a": 1, "b": 2},
    {"uniform": [0, 1]},
    "2024-01-01",
)


def values(depth=2):
    plain = st.sampled_from([*WEIRD, *PLAUSIBLE])
    return plain if not depth else st.one_of(plain, plain, st.deferred(lambda: definitions(depth - 1)))


@st.composite
def definitions(draw, depth=2):
    """The definition of a field with keys that the schema names, in the long or the short form, or nested in itself."""
    kind = draw(st.sampled_from(sorted(kinds())))
    keys = [*SPEC.properties(f"kinds/{kind}"), *OPTIONS, kind, kinds()[kind].main]
    body = draw(st.dictionaries(st.sampled_from(keys), values(depth), max_size=4))
    return draw(st.sampled_from([{"kind": kind, **body}, {kind: body}, {kind: draw(values(depth)), **body}]))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(definitions())
@example({"faker": {"faker": "name"}})
@example({"faker": "get_providers"})
@example({"faker": "seed_instance"})
@example({"integer": {"integer": [1, 2]}})
@example({"uuid": {"kind": "uuid"}})
def test_a_definition_is_drawn_from_or_refused(definition):
    with tempfile.TemporaryDirectory() as place:
        spec, out, said = Path(place) / "spec.yaml", Path(place) / "out.csv", io.StringIO()
        spec.write_text(yaml.safe_dump({"fields": {"c": definition}}))
        with contextlib.redirect_stderr(said):
            code = main(["--spec", str(spec), "-o", str(out), "--n", "5", "--seed", "1", "--quiet"])
        assert code in {0, 2}, said.getvalue()
        if code == 2:
            assert said.getvalue().startswith("error: ")
            assert "Traceback" not in said.getvalue()
        else:
            assert " object at 0x" not in out.read_text()
