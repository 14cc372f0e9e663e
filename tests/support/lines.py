"""Lines of product code by room, within one per cent of what pygount counts: make lines.

A line counts if it holds more than blanks, comments, docstrings, other strings alone, and brackets.
"""

import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PRODUCT = ("harness", "generators", "reports", "pipeswarm", "locustfiles")
LIMIT = 57_548
_BEGIN, _END = "<!-- lines: make lines -->", "<!-- /lines -->"
_NOTHING = frozenset("()[]{}:;,")  # a line of these alone is none
_SILENT = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.STRING,
    tokenize.ENCODING, tokenize.ENDMARKER,
})  # fmt: skip


def code_lines(source: str) -> int:
    """The lines of code in a module's source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return len({
        each.start[0]
        for each in tokens
        if each.type not in _SILENT and each.string not in _NOTHING and each.string != "pass"
    })  # fmt: skip


def by_room() -> Counter[str]:
    """Lines by room: a package of `harness`, or another top-level package."""
    found: Counter[str] = Counter()
    for top in PRODUCT:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            room = "/".join(parts[:2]) if top == "harness" and len(parts) > 2 else top
            found[room] += code_lines(path.read_text(encoding="utf-8"))
    return found


def table(lines: Counter[str]) -> str:
    """The table as Markdown, the largest room first."""
    rows = [("room", "lines"), ("---", "--:"), *((f"`{room}`", f"{count:,}") for room, count in lines.most_common())]
    return "\n".join(f"| {room} | {count} |" for room, count in (*rows, ("**all**", f"**{lines.total():,}**")))


def main() -> int:
    """Check the limit; without ``--check`` also write the table into docs/architecture.md."""
    lines = by_room()
    if "--check" not in sys.argv:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(_BEGIN)
        PAGE.write_text(f"{before}{_BEGIN}\n{table(lines)}\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
        print(table(lines))
    if lines.total() <= LIMIT:
        return 0
    print(
        f"{lines.total():,} lines of product code are more than {LIMIT:,}: delete as many as you add", file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
