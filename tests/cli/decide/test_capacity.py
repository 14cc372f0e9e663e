import json
from xml.etree import ElementTree as ET

import pytest

from harness.analysis.capacity import fit
from harness.cli import main
from tests.support.timelines import burst

TABLE = "runs,nodes,duration,repetition\n100,5,1h30m,1\n200,10,95m,1\n400,20,5500,1\n"
KEYS = {"runs", "nodes", "within_s", "answer", "interval", "model", "fitted_on", "binding", "warnings"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "observations.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture(autouse=True, scope="module")
def each_model_is_fitted_once():
    """Most questions are about the same table, whose model takes a second to fit. Random draws go on as after a fit."""
    known, fitted = {}, fit.fit

    def once(observations, random, **more):
        given = (tuple(observations), tuple(more.items()), repr(random.bit_generator.state))
        if given not in known:
            known[given] = (fitted(observations, random, **more), random.bit_generator.state)
        model, random.bit_generator.state = known[given]
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "fit", once)
        yield


def asked(capsys, *arguments):
    assert main(["capacity", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_three_rows_answer_each_question(table, capsys):
    nodes = asked(capsys, "--from", table, "--runs", "400", "--within", "90m")
    assert set(nodes) >= KEYS
    assert nodes["within_s"] == 5400
    assert nodes["interval"][0] <= nodes["answer"] == nodes["nodes"]
    took = asked(capsys, "--from", table, "--runs", "400", "--nodes", "20")
    assert took["interval"][0] < took["answer"] == took["within_s"] < took["interval"][1]
    assert took["answer"] == pytest.approx(5500, rel=0.1)
    runs = asked(capsys, "--from", table, "--nodes", "10", "--within", "95m")
    assert runs["answer"] == runs["runs"] == pytest.approx(200, rel=0.15)


def test_several_sources_may_be_given_at_once_or_one_by_one(table, tmp_path, capsys):
    more = tmp_path / "more.csv"
    more.write_text("runs,nodes,duration\n400,16,700\n")
    found = []
    for sources in (["--from", str(table), str(more)], ["--from", str(table), "--from", str(more)]):
        assert main(["capacity", *sources, "--runs", "300", "--nodes", "8", "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["fitted_on"]["runs"][1] == 400


def test_a_run_folder_answers_too(tmp_path, capsys):
    folder = burst(200, pool=2).write(tmp_path)
    found = asked(capsys, "--from", folder.path, "--runs", "200", "--nodes", "2")
    assert found["fitted_on"]["runs"] == [200, 200]
    assert found["interval"][0] <= found["answer"] <= found["interval"][1]


def test_the_test_to_run_next_is_proposed(tmp_path, capsys):
    path = tmp_path / "one-load.csv"
    path.write_text("runs,nodes,duration\n100,2,150\n100,5,90\n100,20,60\n")
    question = ("--from", path, "--runs", "400", "--nodes", "20")
    assert "next_test" not in asked(capsys, *question)
    found = asked(capsys, *question, "--next")["next_test"]
    assert found["then"] < found["now"]
    assert main(["capacity", *map(str, question), "--next"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"as an experiment: loads: [{found['runs']}], nodes: [{found['nodes']}]" in told


def test_lists_make_a_grid(table, capsys):
    found = asked(capsys, "--from", table, "--runs", "100,200", "--nodes", "5,10,20")
    assert [(cell["runs"], cell["nodes"]) for cell in found["grid"]] == [
        (runs, nodes) for runs in (100, 200) for nodes in (5, 10, 20)
    ]
    assert main(["capacity", "--from", str(table), "--runs", "100", "--nodes", "5", "--grid"]) == 0
    assert capsys.readouterr().out.count(" to ") >= 16


@pytest.mark.parametrize(
    "question",
    [
        ["--runs", "400", "--within", "90m"],
        ["--nodes", "10", "--within", "90m"],
        ["--runs", "400,800", "--nodes", "20"],
    ],
)
def test_a_plot_shows_every_test_every_answer_and_the_unobserved_range(table, tmp_path, capsys, question):
    picture = tmp_path / "capacity.svg"
    found = asked(capsys, "--from", table, *question, "--grid", "--plot", picture)
    svg = ET.fromstring(picture.read_bytes())
    shapes = {tag: svg.findall(f"{{*}}{tag}") for tag in ("circle", "text", "polygon")}
    titles = [shape.find("{*}title").text for shape in shapes["circle"]]
    assert titles == [
        "tested: 100 runs on 5 nodes took 1 h 30 min",
        "tested: 200 runs on 10 nodes took 1 h 35 min",
        "tested: 400 runs on 20 nodes took 1 h 31 min",
    ]
    heights = [float(shape.get("cy")) for shape in shapes["circle"]]
    assert heights[1] < heights[2] < heights[0], "the longer, the higher"
    answers = [title.text for shape in shapes["polygon"] if (title := shape.find("{*}title")) is not None]
    cells = [c for c in found["grid"] if found["asked"] == "within_s" or c["within_s"] == found["within_s"]]
    assert len(answers) == len(cells)
    assert "not observed" in {text.text for text in shapes["text"]}


def test_the_ending_of_its_name_decides_the_format_of_a_plot(table, tmp_path, capsys):
    question = ["capacity", "--from", str(table), "--runs", "400", "--nodes", "20", "--quiet", "--plot"]
    assert main([*question, str(tmp_path / "plot.png")]) == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert main([*question, str(tmp_path / "plot.html")]) == 0
    page = (tmp_path / "plot.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", ""), "an offline file"
    for wrong in (tmp_path / "plot.pdf", tmp_path / "no-folder" / "plot.svg"):
        assert main([*question, str(wrong)]) == 2
        assert "--plot" in capsys.readouterr().err


def test_the_model_is_checked_on_its_own_data(table, capsys):
    assert asked(capsys, "--from", table, "--runs", "400", "--nodes", "20")["leave_one_out"]["sizes"] == 3


def test_cost_is_nodes_times_hours_times_price(table, capsys):
    found = asked(capsys, "--from", table, "--runs", "400", "--nodes", "20", "--price", "0.5")
    assert found["cost"] == pytest.approx(20 * found["within_s"] / 3600 * 0.5)


def test_evictions_make_it_longer(table, capsys):
    plain = asked(capsys, "--from", table, "--runs", "400", "--nodes", "20")
    spot = asked(capsys, "--from", table, "--runs", "400", "--nodes", "20", "--spot", "0.5", "--step-time", "1h")
    assert spot["answer"] > 1.2 * plain["answer"]
    assert any("spot" in warning for warning in spot["warnings"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs,nodes\n1,2\n", "column 'duration' is missing"),
        ("runs,nodes,duration\n", "has no rows"),
        ("runs,nodes,duration\n1,2,soon\n", "line 2, column 'duration': 'soon'"),
        ("runs,nodes,duration\n1,2,3\n-4,2,3\n", "line 3, column 'runs': '-4'"),
        ("runs,nodes,duration\n1,2\n", "line 2, column 'duration'"),
    ],
)
def test_an_invalid_table_is_rejected_with_the_place_of_the_error(tmp_path, capsys, text, message):
    path = tmp_path / "observations.csv"
    path.write_text(text)
    assert main(["capacity", "--from", str(path), "--runs", "1", "--nodes", "1"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--runs", "5"], ["--runs", "5", "--nodes", "1", "--within", "1h"], ["--runs", "x", "--nodes", "1"],
     ["--runs", "0", "--nodes", "1"], ["--runs", "5", "--within", "1y"], ["--runs", "5", "--nodes", "2", "--spot"]],
)  # fmt: skip
def test_an_invalid_question_is_rejected(table, capsys, arguments):
    assert main(["capacity", "--from", str(table), *arguments]) == 2
    assert "→" in capsys.readouterr().err


def test_quiet_prints_nothing(table, capsys):
    assert main(["capacity", "--from", str(table), "--runs", "5", "--nodes", "2", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("question", "expected", "unexpected"),
    [
        (["--runs", "1", "--nodes", "1"], "1 run on 1 node: ", "1 runs"),
        (["--runs", "10", "--within", "10h"], "10 runs in 10 h: 1 node.", "1 nodes"),
        (["--runs", "400", "--within", "1ms"], "no number of nodes is enough", "bound"),
        (["--runs", "400,800", "--within", "1ms"], "none is enough", "bound"),
        (["--runs", "4e9", "--nodes", "1"], "4,000,000,000 runs, 10,000,000 times", "000.0 times"),
    ],
)
def test_answers_read_well_in_a_terminal(table, capsys, question, expected, unexpected):
    assert main(["capacity", "--from", str(table), *question]) == 0
    text = capsys.readouterr().out
    assert expected in text
    assert unexpected not in text
    assert max(map(len, text.splitlines())) <= 100
