"""``pipeswarm load [TARGET] --options``: the options of locustfiles, which ``locust --help`` can't show.

Locust answers ``--help`` before it reads the locustfile, and so without the options that the locustfile adds.
"""

import argparse
import json
from collections.abc import Iterable, Mapping

from harness.cli import printing
from harness.model.errors import ExitCode
from harness.model.options import Option, with_defaults
from harness.model.schedules import schedule_options
from harness.plan.options import LOAD, OBSERVER, SCHEDULE, WEB
from harness.targets.discovery import find, names

Sections = Mapping[str, "tuple[Option, ...]"]


def show(arguments: argparse.Namespace) -> int:
    """Print name, default and meaning of every option, as ``pipeswarm load`` was asked to."""
    found = sections([arguments.target] if arguments.target else names())
    printing.show(arguments, lambda: _text(found), lambda: json.dumps(_document(found), indent=2))
    return ExitCode.OK


def sections(targets: Iterable[str]) -> Sections:
    """The options of locustfiles for `targets` by their headings; a single target's defaults apply."""
    platforms = {name: find(name) for name in targets}
    defaults = next(iter(platforms.values())).DEFAULTS if len(platforms) == 1 else {}
    ours = {"Schedule": (SCHEDULE, *schedule_options()), "Load": LOAD, "Observer": OBSERVER, "Web UI": WEB}
    return {
        **{heading: with_defaults(options, defaults) for heading, options in ours.items()},
        **{f"Target {name}": tuple(platform.OPTIONS) for name, platform in platforms.items() if platform.OPTIONS},
    }


def _text(sections: Sections) -> str:
    texts = ["usage: locust -f locustfiles/TARGET.py [Locust's options] [options below]\n"]
    for heading, options in sections.items():  # targets may have options of the same name
        parser = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
        group = parser.add_argument_group(heading)
        for option in options:
            option.add_to(group, help=f"{option.meaning} [{option.variable}]".replace("%", "%%"))
        texts.append(parser.format_help())
    return "\n".join([*texts, "Locust's own options: locust --help"])


def _document(sections: Sections) -> dict[str, object]:
    return {
        "options": [
            {"name": f"--{option.name}", "section": heading, "default": option.default, "help": option.help}
            | ({"choices": list(option.choices)} if option.choices else {})
            for heading, options in sections.items()
            for option in options
        ]
    }
