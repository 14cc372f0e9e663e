import json
import re
from datetime import date

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generators.kinds import kinds
from generators.schema import SPEC, WORKLOAD, validate
from generators.spec import default_spec, read_spec
from harness.documents import parse_yaml, read_yaml
from harness.model.errors import ConfigError
from tests.support.drawing import drawn, spec_of

ROOT = SPEC.path.parent


def complaint(text):
    with pytest.raises(ConfigError) as caught:
        spec_of(text)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fields:\n  x: {uniform: [0, 1]}\n  y:\n    lognormal: [1, -2]\n", "test.yaml:3: fields.y: median 1 and sigma -2"),
        ("fields:\n  x:\n    kind: normal\n    mean: 3\n", "test.yaml:2: fields.x: mean_sd or mean and sd is missing"),
        ("fields:\n  x:\n    kind: nromal\n", "test.yaml:3: fields.x.kind: unknown kind 'nromal'"),
        ("fields:\n  x: {unifrom: [0, 1]}\n", "test.yaml:2: fields.x: unknown kind 'unifrom'"),
        ("fields:\n  x:\n    integer: [1, 2]\n    stpe: 2\n", "test.yaml:4: fields.x.stpe: unknown key 'stpe'"),
        ("fields:\n  x: {integer: [1, two]}\n", "test.yaml:2: fields.x.range[1]: 'two' is not of type 'integer'"),
        ("fields:\n  x: {integer: [5, 1]}\n", "test.yaml:2: fields.x.range: the range starts at 5, above its end 1"),
        ("fields:\n  x: {boolean: 2}\n", "test.yaml:2: fields.x.p: 2 is greater than the maximum of 1"),
        ("fields:\n  x: 7\n", "test.yaml:2: fields.x: 7 is not a definition"),
        ("fields:\n  x: {uniform: [0, .nan]}\n", "test.yaml:2: fields.x.uniform[1]: nan is not a finite number"),
        ("fields: {}\n", "test.yaml:1: fields: {} should be non-empty"),
        ("feilds:\n  x: uuid\n", "test.yaml:1: feilds: unknown key 'feilds'"),
        ("- 1\n", "test.yaml:1: not a mapping of keys to values"),
        ("fields:\n  x: {template: '{nope}'}\n", "test.yaml:2: fields.x: unknown field 'nope'"),
        ("fields:\n  x: {template: '{y'}\n", "test.yaml:2: fields.x.pattern: '{y' is not a template"),
        ("fields:\n  x: {template: '{y.z}'}\n  y: uuid\n", "test.yaml:2: fields.x.pattern: '{y.z}' is not a field's name"),
        ("fields:\n  x: {expression: 'y +'}\n  y: uuid\n", "test.yaml:2: fields.x.formula: not a formula"),
        ("fields:\n  x: {expression: y}\n  y: {template: '{x}'}\n", "circular reference: "),
        ("fields:\n  x: {choice: [a, b], weights: [1]}\n", "test.yaml:2: fields.x.weights: 1 weights for 2 values"),
        ("fields:\n  x: {choice: {a: 0}}\n", "test.yaml:2: fields.x: the weights add up to 0"),
        ("fields:\n  x: {normal: [0, 1], min: 3, max: 2}\n", "test.yaml:2: fields.x: min is not below max"),
        ("fields:\n  x: {normal: [0, 1], min: 30}\n", "more than 6 standard deviations away"),
        ("fields:\n  x: {datetime: [2025-01-01, 2024-01-01]}\n", "there is no instant between"),
        ("fields:\n  x: {datetime: [2025-01-01, soon]}\n", "test.yaml:2: fields.x.range: 'soon' is not a date or time"),
        ("fields:\n  x: {datetime: [2025-01-01, 2025-01-02], step: often}\n", "fields.x.step: 'often' is not a duration"),
        ("fields:\n  x: {uuid: null, correlation: {with: y, rank: 0.5}}\n  y: {normal: [0, 1]}\n", "x can't be correlated"),
        ("fields:\n  x: {by: y, cases: {a: {unifrom: 1}}}\n  y: {choice: [a]}\n", "fields.x.cases.a: unknown kind 'unifrom'"),
        ("fields:\n  x: {json: {a: {$: {integer: [1]}}}}\n", "test.yaml:2: fields.x.value.a.$.range: [1] is too short"),
        ("fields:\n  x: {json: {a: {$: {integer: [1, 2], unique: true}}}}\n", "fields.x.value.a.$.unique: unique applies to fields"),
        ("fields:\n  x: {by: y, cases: {a: {boolean: 1, nullable: 0.5}}}\n  y: {choice: [a]}\n", "a case can't be nullable"),
        ("fields:\n  x: {json: {$repeat: {of: 1, min: 5}}}\n", "fields.x.value.$repeat: min 5 and max 3"),
        ("fields:\n  x: [\n", "not valid YAML"),
        ("fields:\n  x: uuid\n  x: uuid\n", "test.yaml:3: duplicate key 'x'"),
        ("a: &a [*a]\n", "the alias 'a' refers to itself"),
        ("", "test.yaml: not a mapping of keys to values"),
        ("fields:\n  x: {sequence: 99999999999999999999}\n", "an integer beyond 64 bits"),
    ],
)  # fmt: skip
def test_an_error_names_line_and_key(text, expected):
    assert expected in complaint(text)


def test_circular_correlations_are_rejected():
    fields = {
        "a": {"normal": [0, 1], "correlation": {"with": "b", "rank": 0.5}},
        "b": {"normal": [0, 1], "correlation": {"with": "a", "rank": 0.5}},
    }
    with pytest.raises(ConfigError, match="correlation is circular"):
        spec_of(fields)


def test_nested_aliases_do_not_explode():
    bomb = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [{','.join(['*' + chr(97 + k)] * 9)}]\n" for k in range(8)
    )
    assert "more than" in complaint(bomb)


def test_misspelled_names_get_a_suggestion():
    with pytest.raises(ConfigError) as caught:
        spec_of({"plant": {"choice": ["a"]}, "x": {"template": "{plnat}"}})
    assert caught.value.hint == "did you mean 'plant'?"


def test_id_and_scenario_name_come_first_and_are_added_when_absent():
    spec = spec_of({"z": "uuid", "scenario_name": {"template": "run {id}"}, "a": "uuid"})
    assert spec.columns == ["id", "scenario_name", "z", "a"]


def test_the_long_and_the_short_form_are_the_same():
    short = drawn({"x": {"lognormal": [3, 0.5]}, "y": {"faker": "city"}}, 50)
    long = drawn(
        {"x": {"kind": "lognormal", "median": 3, "sigma": 0.5}, "y": {"kind": "faker", "provider": "city"}}, 50
    )
    assert all(short[name].equals(long[name]) for name in short)


def test_the_digest_tells_specs_apart():
    digests = {spec_of({"x": {"integer": [1, k]}}).digest for k in (5, 6)} | {
        spec_of({"y": {"integer": [1, 5]}}).digest
    }
    assert len(digests) == 3


def test_scalars_follow_yaml_1_2():
    found = drawn(
        "fields:\n  on: {choice: [NO]}\n  c: {choice: [007]}\n  t: {choice: [18:00]}\n  b: {choice: [true]}\n", 1
    )
    assert {name: found[name].to_list() for name in ("on", "c", "t", "b")} == {
        "on": ["NO"],
        "c": ["007"],
        "t": ["18:00"],
        "b": [True],
    }


# What a spec may look like on the way to being one: keys of the format, and values of every type.
words = st.sampled_from(
    [*kinds(), "kind", "by", "cases", "otherwise", "nullable", "unique", "hidden", "correlation", "with", "rank", "min",
     "max", "decimals", "range", "values", "weights", "step", "business_hours", "$", "$repeat", "of", "args", "x", "y"]
)  # fmt: skip
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), words, st.dates(),
    st.sampled_from(["{x}", "{y:%Y}", "x + y", "2025-01-01", "15m", "08:00", "{"]),
)  # fmt: skip
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(words, v, max_size=4), max_leaves=12)
definitions = st.one_of(
    values,
    st.dictionaries(words, values, min_size=1, max_size=4),
    st.tuples(st.sampled_from(sorted(kinds())), values).map(lambda t: {t[0]: t[1]}),
)


def refusal(text):
    """The error of a file, or none when it is a spec."""
    try:
        document = parse_yaml(text, "fuzz.yaml")
        validate(document)
        read_spec(document)
    except ConfigError as error:
        return error
    return None


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({"x": definitions, "y": definitions}))
@example({"x": {"faker": date(2000, 1, 1)}, "y": {"template": date(2000, 1, 1)}})
@example({"x": {"from_file": date(2000, 1, 1)}, "y": None})
@example({"x": {"expression": {"expression": False}}, "y": None})
def test_any_file_is_read_or_reported_as_invalid(fields):
    error = refusal(yaml.safe_dump({"fields": fields}, allow_unicode=True))
    assert error is None or (re.match(r"fuzz\.yaml(:\d+)?: ", error.message) and error.hint), error


def drawn_or_refused(fields):
    try:
        return drawn(fields, 20), None
    except ConfigError as error:
        return {}, error


plausible = st.one_of(
    st.builds(lambda a, b, d: {"uniform": [a, b], "decimals": d}, st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.integers(0, 15)),
    st.builds(lambda a, b, d: {"lognormal": [a, b], "decimals": d}, st.floats(1e-9, 1e300), st.floats(0.01, 50), st.integers(0, 15)),
    st.builds(lambda a, b, d: {"normal": [a, b], "min": d}, st.floats(-1e12, 1e12), st.floats(1e-9, 1e9), st.floats(-1e12, 1e12)),
    st.builds(lambda a, b, s: {"integer": [a, b], "step": s}, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**62)),
    st.builds(lambda s, k: {"sequence": s, "step": k}, st.integers(-(2**53), 2**53), st.integers(1, 2**31)),
    st.builds(lambda f: {"datetime": ["2025-01-01", "2025-02-01"], "format": f}, st.text(alphabet="%YmdHMSjqQ!-: z3f", min_size=1, max_size=6)),
    st.builds(lambda f: {"template": "a{y:" + f + "}"}, st.text(alphabet="<>^0123456789.dfsxe%YmQ,_+", max_size=6)),
    st.builds(lambda f: {"expression": f}, st.text(alphabet="y+-*/%()1.5 <>=&", min_size=1, max_size=12)),
    st.builds(lambda v: {"json": v}, values),
    st.builds(lambda v: {"choice": v}, st.lists(values, min_size=1, max_size=4)),
    st.builds(lambda n, e: {"zipf": n, "exponent": e}, st.integers(1, 1000), st.floats(0, 20)),
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    plausible,
    st.sampled_from(
        [{"integer": [-3, 3]}, {"uniform": [0, 1]}, {"choice": ["a", ""]}, {"datetime": ["2025-01-01", "2025-01-09"]}]
    ),
)
def test_an_accepted_spec_is_drawn_or_reports_an_error(x, y):
    found, error = drawn_or_refused({"x": {**x, "nullable": 0.2}, "y": y})
    if error is not None:
        assert "fields.x" in error.message
        return
    assert len(found["x"]) == 20
    if found["x"].dtype.kind == "f":
        assert found["x"].drop_nulls().is_finite().all()


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_rejected(text):
    error = refusal(text)
    assert error is None or error.message.startswith("fuzz.yaml")


def test_the_schema_knows_exactly_the_kinds_that_exist():
    assert SPEC.content()["$defs"]["kinds"].keys() == kinds().keys()


@pytest.mark.parametrize("schema", [SPEC, WORKLOAD], ids=["spec", "workload"])
def test_the_schemas_are_schemas(schema):
    Draft202012Validator.check_schema(schema.content())


SHIPPED = sorted([ROOT / "default.scenario.yaml", *(ROOT.parent / "examples").glob("*.scenario.yaml")])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_json_schema_and_we_accept_what_is_shipped(path):
    plain = json.loads(json.dumps(yaml.safe_load(path.read_text()), default=str))
    errors = list(Draft202012Validator(SPEC.content()).iter_errors(plain))
    assert not errors
    assert read_spec(read_yaml(path)).columns[:2] == ["id", "scenario_name"]


@pytest.mark.parametrize(
    "definition", [{"unifrom": [0, 1]}, {"integer": [1]}, {"kind": "faker"}, {"uniform": [0, 1], "stpe": 1}]
)
def test_the_json_schema_rejects_what_we_reject(definition):
    assert not Draft202012Validator(SPEC.content()).is_valid({"fields": {"x": definition}})
    with pytest.raises(ConfigError):
        spec_of({"x": definition})


def test_the_default_spec_generates_training_scenarios():
    assert default_spec().columns[:5] == ["id", "scenario_name", "region", "plant", "sensor_type"]
    assert {"url", "data_multiplier", "start_date"} <= set(default_spec().columns)
