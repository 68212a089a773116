"""The console and ``mqis status`` say the same of the same enterprise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqis.cli.main import app
from mqis.config.nodes import Nodes, save_nodes
from mqis.enterprise.states import ProcessState, Supervised, Supervision, save_states
from mqis.protocol.directory.objects import Partition, PurgeState
from mqis.storage.sqlite import SqliteStore
from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber
from tests.enterprise.monitors import PARTITION, closing_monitors, node, told
from tests.web.asking import Visitor

WORDS = {
    "a": ("up", "authority"),
    "b": ("up", "in step"),
    "c": ("up", "3 behind"),
    "d": ("up", "in step, full resync"),
    "e": ("stopped", "5 behind, full resync"),
    "f": ("does not answer", "unknown"),
}
SUMMARY = (
    "2 of 6 servers are fine; 2 servers are not up or at rest: f, e; 2 servers have other numbers"
)


@dataclass
class Shown:
    """The words of one view."""

    summary: str
    servers: dict[str, str]
    replicas: dict[str, str]
    sessions: dict[str, str]


def stopped(path: Path) -> str:
    """The store of a server that was stopped during a full resynchronisation."""
    id_ = Guid.parse(PARTITION)
    store = SqliteStore(path)
    with store.write() as tx:
        last = SequenceNumber(0x100F)
        tx.put_partition(
            Partition(id_, "a", last, SequenceNumber.MIN, SequenceNumber.MIN, PurgeState.IN_SYNC0)
        )
    store.close()
    return f"sqlite:{path}"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    with closing_monitors() as monitors:
        answers = {
            "a": told("a", 0x1014, authority=True),
            "b": told("b", 0x1014),
            "c": told("c", 0x1011),
            "d": told("d", 0x1014, state="sync0"),
        }
        nodes = [node(name, monitors.add(answer)) for name, answer in answers.items()]
        nodes += [node("e", 1, stopped(tmp_path / "e.db")), node("f", 1)]
        save_nodes(tmp_path, Nodes("Acme", tuple(nodes)))
        states = {"e": Supervised(ProcessState.STOPPED, 1000.0)}
        save_states(tmp_path, Supervision("", True, states))
        yield tmp_path


def by_command(run: Path) -> Shown:
    """As ``mqis status --once`` prints it on a wide terminal."""
    words = ["status", "--once", "--run", str(run)]
    done = CliRunner(env={"COLUMNS": "250"}).invoke(app, words)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    rows = _table(lines, "server", len(WORDS))
    servers = {row["server"]: row["state"] for row in rows}
    sessions = {row["server"]: row["sessions"] for row in rows}
    (partition,) = _table(lines, "partition", 1)
    return Shown(lines[1].strip(), servers, {name: partition[name] for name in servers}, sessions)


def _table(lines: list[str], first: str, rows: int) -> list[dict[str, str]]:
    """The table whose first column is called so; columns begin where their headers do."""
    top = next(n for n, line in enumerate(lines) if re.match(rf"\s*{first}\s", line))
    names = lines[top].split()
    starts = [match.start() for match in re.finditer(r"\S+", lines[top])]
    pairs = list(zip(starts, [*starts[1:], None], strict=True))
    return [
        dict(zip(names, (line[a:b].strip() for a, b in pairs), strict=True))
        for line in lines[top + 2 : top + 2 + rows]
    ]


def by_console(run: Path) -> Shown:
    """As the pages of ``mqis console`` show it."""
    with running_console(ConsoleSettings(Places(run), port=0)) as url:
        visitor = Visitor(url)
        overview, replication = visitor.get("/").html, visitor.get("/replication").html
    summary = re.search(r'data-live="sentence">([^<]*)<', replication)
    assert summary is not None
    servers = re.findall(
        r'<th scope="row"><a[^>]*>(\w)</a></th>.*?<span class="tag[^"]*">([^<]*)<.*?'
        r'<td class="number">([^<]*)<',
        overview,
        re.DOTALL,
    )
    cells = re.findall(r'data-cell="(\w) [^"]*"><span class="tag[^"]*">([^<]*)<', replication)
    assert f">{unescape(summary[1])}</p>" in overview
    states = {name: state for name, state, _ in servers}
    sessions = {name: told for name, _, told in servers}
    return Shown(unescape(summary[1]), states, dict(cells), sessions)


def test_the_console_and_the_command_say_the_same_words(run: Path) -> None:
    shown = by_command(run)
    assert shown.servers == {name: server for name, (server, _) in WORDS.items()}
    assert shown.replicas == {name: replica for name, (_, replica) in WORDS.items()}
    assert shown.summary.startswith(SUMMARY)
    assert shown.sessions == {**dict.fromkeys("abcd", "1 of 2"), "e": "", "f": ""}
    assert by_console(run) == shown


def test_in_step_is_the_same_sentence(tmp_path: Path) -> None:
    with closing_monitors() as monitors:
        nodes = (
            node("a", monitors.add(told("a", 0x1014, authority=True))),
            node("b", monitors.add(told("b", 0x1014))),
        )
        save_nodes(tmp_path, Nodes("Acme", nodes))
        shown = CliRunner(env={"COLUMNS": "250"}).invoke(
            app, ["status", "--once", "--run", str(tmp_path)]
        )
        with running_console(ConsoleSettings(Places(tmp_path), port=0)) as url:
            page = Visitor(url).get("/replication")
    assert shown.exit_code == 0
    sentence = "Every replica is in step with its authority"
    assert sentence in shown.stdout
    assert f'class="note good" role="status" data-live="sentence">{sentence}<' in page.html
