"""The score of `make mutants`: the share of the tried mutants that a test noticed. Aim at 90 %; some change nothing."""

import json
import sys
from pathlib import Path


def main(path: str) -> None:
    """Print the score of mutmut's statistics; mutants that were not tried don't count."""
    found = json.loads(Path(path).read_text())
    noticed = found["killed"] + found["timeout"]
    tried = noticed + found["survived"] + found["no_tests"] + found["suspicious"]
    share = f"{noticed / tried:.0%}" if tried else "no mutant was tried: 0"
    sys.stdout.write(
        f"{share} of {tried} mutants noticed: {found['survived']} survived, {found['no_tests']} have no test\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])
