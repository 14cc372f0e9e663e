"""``pipeswarm experiment plan.yaml``: many tests, chosen one after the other, resumable, one report."""

import argparse
import time
from pathlib import Path

from harness.cli import printing
from harness.cli.decide import sweeping
from harness.cli.sweep_bar import SweepBar
from harness.collectors.kubernetes.node_pools import NodePools
from harness.model.errors import ExitCode
from harness.model.experiment import Question, Result
from harness.model.units import format_duration
from harness.planning.comparison import compare_results
from harness.planning.experiment import answers, expected_tests
from harness.planning.experiment_file import read_experiment
from harness.planning.experiment_folder import MAKESPAN, RESULTS, carry_out, write_observations
from harness.planning.experiment_tests import tester
from reports.experiment import CompletedExperiment, as_json, as_markdown
from reports.experiment_page import render


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("plan", type=Path, help="the experiment's YAML: question, loads, nodes, variants, slos, hooks")
    parser.add_argument(
        "--folder", type=Path, help="folder for the results (default: runs/experiment-NAME); continues if it has some"
    )
    sweeping.configure(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Test point after point until the question is answered; then report."""
    plan = read_experiment(arguments.plan)
    folder = arguments.folder or Path("runs") / f"experiment-{plan.name}"

    expected, begun_s = expected_tests(plan.experiment), time.monotonic()
    about = "" if plan.experiment.question is Question.GRID else "about "
    tested: list[Result] = []  # by this call; an experiment that continues has others

    def progress(result: Result, done: int) -> None:
        tested.append(result)
        variant = "" if result.point.variant == "default" else f"{result.point.variant}, "
        took = format_duration(result.values[MAKESPAN]) if MAKESPAN in result.values else ""
        met = "" if not plan.slos else ", objectives met" if result.met else ", objectives missed"
        each_s = (time.monotonic() - begun_s) / len(tested)
        left = f", about {format_duration(round(each_s * (expected - done)))} left" if done < expected else ""
        place = f"{done} of {about}{expected}" if done <= expected else str(done)
        line = f"{place}: {variant}{result.point.size(plan.experiment.unit)}: {took}{met}{left}"
        bar.say(line)

    with SweepBar("") as bar, sweeping.workers(arguments, bar) as workers:
        if plan.simulate:
            bar.expect(expected)
        results = carry_out(plan, folder, tester(plan, folder, NodePools, workers), progress)
    completed = CompletedExperiment(
        plan.name, plan.experiment, plan.slos, tuple(results), MAKESPAN,
        answers(plan.experiment, results), compare_results(plan.experiment, results),
    )  # fmt: skip
    text = (
        f"{as_markdown(completed)}\n\nReport: {folder / 'experiment.html'}; results: {folder / RESULTS};\n"
        f"for `pipeswarm capacity --from`: {folder}/observations-*.csv"
    )
    document = as_json(completed)
    (folder / "experiment.json").write_text(document + "\n", encoding="utf-8")
    (folder / "experiment.md").write_text(text + "\n", encoding="utf-8")
    (folder / "experiment.html").write_bytes(render(completed))
    write_observations(folder, plan.experiment, results)
    printing.show(arguments, lambda: text, lambda: document)
    return ExitCode.OK
