"""Writes docs/protocols.md: the source files and tests of each section of the specifications.

Usage: python tools/protocols_doc.py [--check]

A source file belongs to the sections that its comments cite, a test to those whose requirements it
names. So the table is as good as the citations.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "protocols.md"
SECTIONS = ROOT / "docs" / "spec" / "sections.tsv"

#: The specification that a bare section number refers to, by directory.
_HOME = {
    "wire/mqds": "MS-MQDS",
    "protocol/directory": "MS-MQDS",
    "runtime/directory": "MS-MQDS",
    "client": "MS-MQDS",
    "wire/mqdsrp": "MC-MQDSRP",
    "protocol/replication": "MC-MQDSRP",
    "wire/mqqb": "MS-MQQB",
    "protocol/queueing": "MS-MQQB",
    "wire/mqcn": "MS-MQCN",
    "protocol/activedirectory": "MS-MQDSSM",
    "wire/mqsd": "MS-MQSD",
    "protocol/discovery": "MS-MQSD",
    "protocol/routing": "MS-MQBR",
    "wire/cmp": "MS-CMP",
    "protocol/multiplexer": "MS-CMP",
    "wire/cmpo": "MS-CMPO",
    "protocol/cmpo": "MS-CMPO",
    "runtime/oletx": "MS-CMPO",
}
_CITED = re.compile(r"(?:(M[SC]-[A-Z]+)(?: section)? )?(?<![\d.])([2-4](?:\.\d+)+)(?![\d.]*\w)")
_NAMED = re.compile(r"\"(MQDS|MQDSRP|MQDSSM|MQSD|MQBR|CMP)-([2-4](?:\.\d+)+)-\d+\"")
_OF_TABLE = {
    "MQDS": "MS-MQDS",
    "MQDSRP": "MC-MQDSRP",
    "MQDSSM": "MS-MQDSSM",
    "MQSD": "MS-MQSD",
    "MQBR": "MS-MQBR",
    "CMP": "MS-CMP",
}

Section = tuple[str, str]
_HEAD = """# Section by section

Where each section of the specifications is implemented and tested. Written by
`python tools/protocols_doc.py` from the citations in the code and from the requirements that tests
name; `make conformance` counts these. Departures from the text are in [errata.md](errata.md).
"""


def prose(path: Path) -> Iterator[str]:
    """The comments and strings of a module, which cite sections."""
    source = io.StringIO(path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.string


def home_of(path: Path) -> str | None:
    inside = path.relative_to(ROOT / "src" / "mqis").as_posix()
    return next((spec for place, spec in _HOME.items() if inside.startswith(f"{place}/")), None)


def citations() -> dict[Section, set[Path]]:
    found: dict[Section, set[Path]] = defaultdict(set)
    for path in sorted((ROOT / "src" / "mqis").rglob("*.py")):
        home = home_of(path)
        for text in prose(path):
            for spec, section in _CITED.findall(text):
                if spec or home:
                    found[spec or home or "", section].add(path.relative_to(ROOT))
    return found


def proofs() -> dict[Section, set[Path]]:
    found: dict[Section, set[Path]] = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for table, section in _NAMED.findall(path.read_text(encoding="utf-8")):
            found[_OF_TABLE[table], section].add(path.relative_to(ROOT))
    return found


def page() -> str:
    cited, proven = citations(), proofs()
    lines = [_HEAD]
    last = None
    with SECTIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            key = row["spec"], row["section"]
            if key not in cited and key not in proven:
                continue
            if row["spec"] != last:
                last = row["spec"]
                lines += [f"\n## {last}\n", "| section | | in | tested by |", "|---|---|---|---|"]
            sources, tests = _links(cited[key]), _links(proven[key])
            lines.append(f"| {row['section']} | {row['title']} | {sources} | {tests} |")
    return "\n".join(lines) + "\n"


def _links(paths: set[Path]) -> str:
    return ", ".join(f"[{_short(path)}](../{path.as_posix()})" for path in sorted(paths))


def _short(path: Path) -> str:
    return path.as_posix().removeprefix("src/mqis/").removeprefix("tests/").removesuffix(".py")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check whether it is up to date")
    made = page()
    if parser.parse_args().check:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == made:
            return 0
        print(
            "docs/protocols.md is out of date: run python tools/protocols_doc.py", file=sys.stderr
        )
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
