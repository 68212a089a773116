"""The words that a shell offers at the cursor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from mqis.cli.completing import FILES, VARIABLE, completions, split_line
from mqis.cli.main import app
from mqis.cli.registry import COMMANDS
from mqis.config.nodes import Nodes, save_nodes
from tests.cli.commands import process, run
from tests.enterprise.test_supervisor import place


def offered(line: str) -> list[str]:
    return [word for word, _ in completions(typer.main.get_command(app), split_line(line))]


def test_every_command_at_the_top_level() -> None:
    assert offered("mqis ") == list(COMMANDS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mqis dis", ["discover"]),
        ("mqis --v", ["--version"]),
        ("mqis journal c", ["check"]),
        ("mqis get ma", ["machine"]),
        ("mqis get machine m1 --pro", ["--prop"]),
        ("mqis get machine m1 --prop site", ["site_id", "site_ids"]),
        ("mqis get site --prop ps", ["psc", "psc_signpk"]),
        ("mqis lookup queue --where jou", ["journal=", "journal_quota="]),
        ("mqis lookup queue --where=jou", ["--where=journal=", "--where=journal_quota="]),
        ("mqis lookup queue --columns path,lab", ["path,label", "path,label_hashkey"]),
        ("mqis lookup queue --sort path,-sco", ["path,-scope"]),
        ("mqis lookup queue --where x=1 --js", ["--json"]),
        ("mqis lookup queue --level p", ["packet", "privacy"]),
        ("mqis get queue x --no-v", ["--no-verify"]),
        ("mqis get queue -- --j", []),
        ("mqis completion z", ["zsh"]),
        ("mqis capture ", [FILES]),
        ("mqis get queue x --store ", [FILES]),
        ("mqis decode --he", ["--help"]),
        ("mqis nothing ", []),
        ("mqis lookup nothing --where ", []),
    ],
)
def test_words_at_the_cursor(line: str, words: list[str]) -> None:
    assert offered(line) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("mqis ", [""]),
        ("mqis get 'a b", ["get", "a b"]),
        ('mqis get "a b" ', ["get", "a b", ""]),
        (r"mqis get queue m\q", ["get", "queue", r"m\q"]),
        ("mqis get #x", ["get", "#x"]),
    ],
)
def test_a_line_is_split_as_a_shell_does(line: str, words: list[str]) -> None:
    assert split_line(line) == words


def test_a_script_gets_words_with_explanations() -> None:
    done = process("disc", env={VARIABLE: "words"})
    assert done.stdout.decode() == f"discover\t{COMMANDS['discover'].summary}\n"
    assert done.stderr == b""


def test_names_of_commands_load_no_command() -> None:
    script = (
        "import sys; from mqis.cli.main import main; main(); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, ""],
        env=os.environ | {VARIABLE: "words"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(COMMANDS) == {line.partition("\t")[0] for line in done.stdout.splitlines()}
    assert "mqis.cli.query" not in done.stderr.split()
    assert "rich" not in done.stderr.split()


def test_a_shell_that_has_no_script() -> None:
    assert run("completion", "tcsh").exit_code == 2


def test_servers_of_the_run_directory_are_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQIS_RUN", str(tmp_path))
    assert offered("mqis stop ") == []
    places = [place(tmp_path / name, name, role) for name, role in _SERVERS.items()]
    save_nodes(tmp_path, Nodes("Acme", tuple(places)))
    assert offered("mqis stop ") == list(_SERVERS)
    assert offered("mqis get queue x --server lei") == ["lei-dir1", "lei-dir2"]
    assert offered("mqis promote lei-dir2") == ["lei-dir2"]
    assert offered("mqis stop Del") == offered("mqis stop del") == ["Del-Dir1"]


_SERVERS = {"Del-Dir1": "pec", "lei-dir1": "psc", "lei-dir2": "bsc"}
