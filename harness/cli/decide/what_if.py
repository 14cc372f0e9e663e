"""``pipeswarm what-if RUN``: what each finding's fix, or another setting or load, would bring."""

import argparse
from dataclasses import replace
from pathlib import Path

from harness.cli import printing
from harness.cli.decide import sweeping
from harness.cli.decide.what_if_text import as_json, as_text
from harness.cli.sweep_bar import SweepBar
from harness.detectors import diagnose
from harness.model.errors import ExitCode
from harness.planning.identify import identify, recorded_test
from harness.planning.timelines import timeline_of
from harness.planning.what_if import RANKS, Scenario, fixes_of, parse_change, parse_sweep, predict, ranked
from harness.simulator.profile.file import load_profile
from harness.store.folder import RunFolder


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.description = (
        "Identifies the platform from a recorded test, reproduces the test, and simulates it with each change."
    )
    parser.add_argument("run", type=Path, help="a run folder: of a test, an import or an observation")
    parser.add_argument(
        "--set", dest="changes", action="append", default=[], metavar="SETTING=VALUE",
        help="change a setting: nodes=40, pool.work.max=60, controller.qps=50, quota.cpu=200, image.train=2Gi, "
             "step.train.cpu=2, queue.team-a.cpu=20, replicas=6, runs×2, schedule=spread:1h, …; several with commas "
             "are one change; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--sweep", action="append", default=[], metavar="SETTING=A..B:STEP",
        help="change a setting to several values: nodes=10..60:10; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--profile", metavar="PROFILE", help="what the test does not show is this profile's (default: plain settings)"
    )
    parser.add_argument(
        "--rank", choices=RANKS, help="sort the rows by this figure, the best first (default: findings, then as given)"
    )
    parser.add_argument(
        "--settings", action="store_true", help="list the settings, where they were read, and how well they fit"
    )
    sweeping.configure(parser)
    printing.configure(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the predictions; without a model that reproduces the test there are none, and the exit code is 4."""
    swept = [each for text in arguments.sweep for each in parse_sweep(text)]
    profile = load_profile(arguments.profile) if arguments.profile else None
    timeline = timeline_of(arguments.run)
    test = recorded_test(RunFolder.open(arguments.run), timeline)
    identified = identify(timeline, test, profile)
    today = Scenario(identified.profile, test)
    changes = [parse_change(text, today, identified.images) for text in (*arguments.changes, *swept)]
    fixes = fixes_of(diagnose(timeline).findings)
    with SweepBar(" for these predictions") as bar, sweeping.workers(arguments, bar) as workers:
        what_if = predict(identified, test, [*(change for _, change in fixes.values()), *changes], workers)
    if arguments.rank:
        what_if = replace(what_if, predictions=ranked(what_if.predictions, arguments.rank))
    said = {name: what for name, (what, _) in fixes.items()}
    printing.show(
        arguments, lambda: as_text(what_if, said, settings=arguments.settings), lambda: as_json(what_if, said)
    )
    return ExitCode.OK if what_if.reproduced else ExitCode.INVALID
