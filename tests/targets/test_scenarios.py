import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import ConfigError
from harness.targets.scenarios import InexactError, Input, InputType, ParamMode, read_scenarios, rows_of, typed

INPUTS = (
    Input("url", InputType.STRING, required=True),
    Input("rows", InputType.INTEGER, required=False),
    Input("rate", InputType.DOUBLE, required=False),
    Input("fast", InputType.BOOLEAN, required=False),
    Input("tags", InputType.LIST, required=False),
    Input("more", InputType.STRUCT, required=False),
)


def read(tmp_path, text, mode="columns", inputs=INPUTS):
    path = tmp_path / "s.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scenarios(path, inputs, ParamMode.parse(mode))


def test_every_cell_is_typed_for_its_input(tmp_path):
    text = 'id,scenario_name,url,rows,rate,fast,tags,more\n1,a,http://x,7,0.5,True,"[1, ""b""]","{""k"": 1}"\n'
    (scenario,) = read(tmp_path, text)
    assert scenario.run_name == "1-a"
    assert scenario.values == {
        "url": "http://x", "rows": 7, "rate": 0.5, "fast": True, "tags": [1, "b"], "more": {"k": 1},
    }  # fmt: skip


def test_an_empty_cell_leaves_the_default_to_the_platform(tmp_path):
    (scenario,) = read(tmp_path, "id,scenario_name,url,rows\n1,a,,\n")
    assert scenario.values == {"url": ""}


def test_byte_order_mark_and_crlf_are_read(tmp_path):
    (scenario,) = read(tmp_path, b"\xef\xbb\xbfid,scenario_name,url\r\n1,a,x\r\n")
    assert (scenario.id, scenario.values) == ("1", {"url": "x"})


def test_a_whole_row_goes_into_one_parameter_as_a_json_list(tmp_path):
    (scenario,) = read(tmp_path, "id,scenario_name,anything\n1,a,x\n", "json:url", INPUTS[:1])
    assert json.loads(scenario.values["url"]) == [{"id": "1", "scenario_name": "a", "anything": "x"}]
    (scenario,) = read(tmp_path, "id,scenario_name\n1,a\n", "json:tags", INPUTS[4:5])
    assert scenario.values == {"tags": [{"id": "1", "scenario_name": "a"}]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id,scenario_name,url\n", "has a header but no scenarios"),
        ("id,url\n1,x\n", "row 1: the column scenario_name is missing"),
        ("id,scenario_name,url,url\n1,a,x,y\n", "column url: given twice"),
        ("id,scenario_name\n1,a\n", "the column url is missing; the pipeline requires it (a string)"),
        ("id,scenario_nam,url\n1,a,x\n", "row 1: the column scenario_name is missing (is it 'scenario_nam'?)"),
        ("id,scenario_name,URL\n1,a,x\n", "column URL: unknown parameter (did you mean 'url'?)"),
        ("id,scenario_name,url,colour\n1,a,x,red\n", "column colour: unknown parameter"),
        ("id,scenario_name,url,rows\n1,a,x,many\n", "row 2, column rows: 'many' is not an integer"),
        ("id,scenario_name,url,fast\n1,a,x,perhaps\n", "row 2, column fast"),
        ("id,scenario_name,url,rate\n1,a,x,nan\n", "row 2, column rate"),
        ("id,scenario_name,url,tags\n1,a,x,{}\n", "row 2, column tags"),
        ("id,scenario_name,url\n1,a,x\n2,b\n", "row 3: 2 cells, but the header has 3"),
        ("id,scenario_name,url\n1,a,x\n1,b,y\n", "row 3, column id: '1' is already used in row 2"),
        (b"id,scenario_name,url\n1,\xff,x\n", "is not UTF-8"),
        ('id,scenario_name,url\n1,"a"b,x\n', "row 2"),
    ],
)
def test_an_error_names_file_row_and_column(tmp_path, text, said):
    with pytest.raises(ConfigError, match=r"s\.csv") as raised:
        read(tmp_path, text)
    assert said in str(raised.value)


def test_errors_are_listed_up_to_a_limit(tmp_path):
    rows = "".join(f"{k},a,x,no\n" for k in range(50))
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, "id,scenario_name,url,rows\n" + rows)
    assert str(raised.value).count("column rows") == 20
    assert "and 30 more" in str(raised.value)


def test_the_error_for_a_missing_file_says_how_to_create_it(tmp_path):
    with pytest.raises(ConfigError, match="generate-scenarios"):
        read_scenarios(tmp_path / "none.csv", INPUTS, ParamMode())


@pytest.mark.parametrize("text", ["json", "json:", "rows"])
def test_unknown_parameter_modes_are_rejected(text):
    with pytest.raises(ConfigError):
        ParamMode.parse(text)


def test_json_mode_needs_a_string_or_list_parameter(tmp_path):
    for mode, said in (("json:none", "has no parameter none"), ("json:rows", "needs a string or a JSON list")):
        with pytest.raises(ConfigError, match=said):
            read(tmp_path, "id,scenario_name\n1,a\n", mode, INPUTS[1:])


def test_only_a_parameters_choices_are_taken_and_not_all_of_many_are_listed(tmp_path):
    choices = tuple(f"c{k}" for k in range(30))
    inputs = [Input("size", InputType.STRING, required=True, choices=choices)]
    (scenario,) = read(tmp_path, "id,scenario_name,size\n1,a,c29\n", inputs=inputs)
    assert scenario.values == {"size": "c29"}
    for cell in ("", "C1"):
        with pytest.raises(ConfigError) as raised:
            read(tmp_path, f"id,scenario_name,size\n1,a,{cell}\n", inputs=inputs)
        assert f"row 2, column size: '{cell}' is not one of: c0, c1, c2" in str(raised.value)
        assert "c11, … (30 in all)" in str(raised.value)
        assert "c12" not in str(raised.value)
    with pytest.raises(ConfigError, match=r"takes one of: c0, .*but json mode sends whole rows"):
        read(tmp_path, "id,scenario_name\n1,a\n", "json:size", inputs)


DEEP = "[" * 300 + "]" * 300


@pytest.mark.parametrize(
    ("cell", "kind", "why"),
    [
        (str(2**64), InputType.INTEGER, "64-bit"),
        (str(-(2**63) - 1), InputType.INTEGER, "64-bit"),
        ("[18446744073709551616]", InputType.LIST, "64-bit"),
        ("[1, NaN]", InputType.LIST, "NaN"),
        ('{"a": -Infinity}', InputType.STRUCT, "Infinity"),
        ("[1e400]", InputType.LIST, "Infinity"),
        ('["\\ud800"]', InputType.LIST, "surrogates"),
        (DEEP, InputType.LIST, "[Rr]ecursion"),
        ("[" * 100_000 + "]" * 100_000, InputType.LIST, "deep"),
    ],
)  # fmt: skip
def test_a_cell_that_would_arrive_as_another_value_is_refused(cell, kind, why):
    with pytest.raises(InexactError, match=why):
        typed(cell, kind)


@pytest.mark.parametrize("kind", [InputType.INTEGER, InputType.LIST])
def test_a_platform_that_reads_numbers_as_doubles_gets_no_integer_beyond_them(kind):
    def cell(number):
        return f"[{number}]" if kind is InputType.LIST else str(number)

    typed(cell(2**53 - 1), kind, as_double=True)
    typed(cell(2**63), kind)
    with pytest.raises(InexactError, match="53-bit"):
        typed(cell(2**53 + 1), kind, as_double=True)


def test_a_refused_value_is_named_with_its_place(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"row 2, column tags: '\[NaN\]' is not a value that can be sent exactly: JSON has neither NaN",
    ):
        read(tmp_path, "id,scenario_name,url,tags\n1,a,x,[NaN]\n")


in_64_bits = st.integers(-(2**63), 2**64 - 1)


@given(st.recursive(st.none() | st.booleans() | in_64_bits | st.text(), st.lists, max_leaves=5))
def test_lists_come_back_from_their_json(value):
    assert typed(json.dumps([value]), InputType.LIST) == [value]


def test_semicolon_separated_files_are_reported(tmp_path):
    path = tmp_path / "semicolons.csv"
    path.write_bytes(b"\xef\xbb\xbfid;scenario_name\r\n1;a\r\n")
    with pytest.raises(ConfigError, match="is semicolon-separated"):
        list(rows_of(path, ""))
