"""The commands that the pages show, and a shell session that runs them as a reader would.

A *block* is what stands between two fences and has commands in it. A *scenario* (see
``scenarios.py``) names the blocks that one session runs, in their order, in one directory.
``not_run.toml`` lists the commands that no test runs, each with its reason.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from mqis.testing.ports import free_ports
from tests.docs.documents import ROOT
from tests.waiting import DEADLINE_S

#: Every page, not the tables beside them.
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
_PROGRAMS = (
    r"mqis|make|python3? -m|\.venv/bin/\S+|ldap\w+|ldb\w+|samba\S*|spark-\w+"
    r"|man|export|podman|ssh|psql"
)
_COMMAND = re.compile(rf"^(?:[$#] |(?:{_PROGRAMS}) )", re.M)
#: What differs from run to run in the output that a page shows.
_VARYING = re.compile(
    r"[0-9a-f]{8}-\.\.\.|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*|\d+ ms"
)
#: An output stands so many lines below its commands, at most.
_NEAR = 4
_BREAK = "\x1e"
#: Stands for what varies.
_ANY = "\x1f"


@dataclass(frozen=True)
class Block:
    """The commands between two fences, and the output that the page shows for them."""

    page: str
    language: str
    text: str
    shown: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """What is typed, with continued lines; comments and empty lines left out."""
        lines = self.text.replace("\\\n", "\\\0").splitlines()
        prompts = [line for line in lines if re.match(r"[$#] (?=\S)", line)]
        if self.language != "sh" and prompts:
            lines = [line[2:] for line in prompts]
        return tuple(line.replace("\0", "\n") for line in lines if line.strip())


@cache
def command_blocks() -> tuple[Block, ...]:
    """Every block of every page that has a command in it."""
    return tuple(block for path in PAGES for block in _blocks(path))


def _blocks(path: Path) -> Iterator[Block]:
    page = path.relative_to(ROOT).as_posix()
    found: list[Block] = []
    content, end = path.read_text("utf-8"), 0
    for fence in _FENCE.finditer(content):
        language, text = fence.groups()
        if language == "sh" or (not language and _COMMAND.search(text)):
            found.append(Block(page, language, text))
            end = fence.end()
        elif language in ("", "text") and found and not found[-1].shown:
            near = content.count("\n", end, fence.start()) <= _NEAR
            found[-1] = replace(found[-1], shown=text if near else "")
    yield from found


@dataclass(frozen=True)
class NotRun:
    """A command that tests do not run."""

    page: str
    command: str
    reason: str
    #: The session of ``make engines`` runs it: it takes Spark, or minutes.
    slow: bool = False

    def is_about(self, block: Block, command: str) -> bool:
        return block.page == self.page and command.startswith(self.command)


@cache
def not_run() -> tuple[NotRun, ...]:
    content = tomllib.loads(Path(__file__).with_name("not_run.toml").read_text("utf-8"))
    return tuple(NotRun(**entry) for entry in content["command"])


@dataclass(frozen=True)
class Scenario:
    """A session of one or more pages."""

    name: str
    #: Pages with the beginnings of the blocks that are run; ``*``: all that it has. Without a page:
    #: what happens between blocks, as a script.
    blocks: Sequence[tuple[str, str]]
    #: What a reader has before: files, servers, an export.
    before: str = ""
    after: str = ""
    #: Patterns of the pages and what stands there in this session.
    replaced: Sequence[tuple[str, str]] = ()
    #: Ports of the pages that others may use; each becomes a free one.
    ports: Sequence[str] = ()
    #: Addresses 127.0.0.N become those of a network of one's own.
    own_network: bool = False
    #: Commands that run until Ctrl-C, and what they print before that.
    until: Mapping[str, str] = field(default_factory=dict)
    #: Commands that find faults, and so end with status 1.
    finds: Sequence[str] = ()
    printed: Sequence[str] = ()
    logged: Sequence[str] = ()
    #: Parts of shown lines that differ here.
    varying: str = ""
    #: The real part behind it: a fixture.
    real: str = ""
    #: ``make engines`` runs it.
    slow: bool = False

    def taken(self) -> list[Block]:
        """The blocks of pages, in the order of the session."""
        return [block for block in self.steps() if isinstance(block, Block)]

    def steps(self) -> list[Block | str]:
        found: list[Block | str] = []
        for page, first in self.blocks:
            if not page:
                found.append(first)
                continue
            begins = [
                block
                for block in command_blocks()
                if block.page == page and (first == "*" or block.commands[0].startswith(first))
            ]
            assert begins, f"{page}: no block begins with {first}"
            found += begins
        return found

    def runs(self, block: Block, command: str) -> bool:
        return not any(
            each.is_about(block, command) and not (each.slow and self.slow) for each in not_run()
        )


_PRELUDE = """
set -Eeuo pipefail
trap 'echo "in: $BASH_COMMAND" >&2' ERR
export COLUMNS=200
# Lets a command end with status 1 because it has found something.
finding() {
    local code=0
    "$@" 2> finding.txt || code=$?
    cat finding.txt >&2
    [ $code -le 1 ] && ! grep -q '^mqis: ' finding.txt  # which is an error, and no finding
}
# Waits until a command has printed a text, and ends it as Ctrl-C does.
until_shown() {
    local text=$1 code=0; shift
    set -m; "$@" > until.txt 2>&1 & local pid=$!; set +m
    until grep -q -- "$text" until.txt; do
        kill -0 $pid 2> /dev/null || { cat until.txt >&2; return 1; }
        sleep 0.1
    done
    kill -INT $pid; wait $pid || code=$?
    cat until.txt
    [ $code = 0 ] || [ $code = 130 ]
}
"""


def script_of(scenario: Scenario) -> str:
    """The session as a script: its commands, with a mark between the blocks."""
    parts = [_PRELUDE, scenario.before]
    for block in scenario.steps():
        if isinstance(block, str):
            parts.append(block)
            continue
        lines = [_line(scenario, each) for each in block.commands if scenario.runs(block, each)]
        parts += [f"printf '{_BREAK}'", *lines]
    script = "\n".join([*parts, f"printf '{_BREAK}'", scenario.after, ""])
    for fixed, port in zip(scenario.ports, free_ports(len(scenario.ports)), strict=True):
        script = re.sub(rf"\b{fixed}\b", str(port), script)
    if scenario.own_network:
        net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}."
        script = script.replace("127.0.0.", net)
    return script


def _line(scenario: Scenario, command: str) -> str:
    line = command
    for pattern, instead in scenario.replaced:
        line = re.sub(pattern, instead, line)
    for begin, text in scenario.until.items():
        if command.startswith(begin):
            return f"until_shown {shlex.quote(text)} {line}"
    if command.startswith(tuple(scenario.finds)):
        return f"finding {line}"
    return line


def run_session(
    scenario: Scenario, directory: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Runs a scenario, checks what its pages show, and returns all that was printed."""
    programs = Path(sys.executable).parent
    if not (programs / "mqis").exists():
        pytest.skip("mqis is not installed beside this Python")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MQIS_")}
    own = {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(ROOT), "PYTHONPATH": _path()}
    done = subprocess.run(
        ["bash", "-c", script_of(scenario)],
        cwd=directory,
        env=kept | own | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=5 * DEADLINE_S,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    _, *outputs, _ = done.stdout.split(_BREAK)
    for block, output in zip(scenario.taken(), outputs, strict=True):
        _compare(block, output, scenario.varying)
    for text in scenario.printed:
        assert text in done.stdout, text
    for text in scenario.logged:
        assert text in done.stderr, text
    return done.stdout


def _path() -> str:
    """Examples are run from the root of the repository, and pages say so."""
    inherited = os.environ.get("PYTHONPATH")
    return f"{ROOT}:{inherited}" if inherited else str(ROOT)


def _compare(block: Block, output: str, varying: str) -> None:
    """Each line that the page shows was printed, or is the beginning of a printed one.

    ``...`` stands for anything.
    """
    printed = [_fixed(line, varying) for line in output.splitlines()]
    for line in block.shown.splitlines():
        wanted = re.escape(_fixed(line, varying)).replace(r"\.\.\.", ".*")
        assert any(re.match(wanted, each) for each in printed), (line, output)


def _fixed(line: str, varying: str) -> str:
    line = _VARYING.sub(_ANY, line)
    if varying:
        line = re.sub(varying, _ANY, line)
    return " ".join(line.split())
