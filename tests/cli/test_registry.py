"""The table of commands: every line leads to a command, and the help loads none of them."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
import typer

from mqis.cli.main import app
from mqis.cli.registry import COMMAND_GROUPS, COMMANDS
from tests.cli.commands import run

SUMMARY_LENGTH = 60


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_the_table_is_a_command_with_help(name: str) -> None:
    group = typer.main.get_command(app)
    command = group.get_command(click.Context(group), name)  # type: ignore[attr-defined, arg-type]
    assert command.name == name
    assert command.help
    summary = COMMANDS[name].summary
    assert len(summary) <= SUMMARY_LENGTH
    assert not summary.endswith(".")


def test_the_help_groups_every_command() -> None:
    shown = run("--help").stdout
    sections = {part.split(":\n")[0]: part.split(":\n")[-1] for part in shown.split("\n\n")}
    for title, commands in COMMAND_GROUPS.items():
        lines = [line.split(maxsplit=1) for line in sections[title].splitlines()]
        assert lines == [[name, summary] for name, (_, summary) in commands.items()]


def test_no_arguments_show_the_help() -> None:
    result = run()
    assert result.exit_code == 2
    assert result.stdout == run("--help").stdout


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_command_and_no_rich(option: str) -> None:
    """Loading them all takes several times as long as the rest."""
    script = (
        "import sys; from mqis.cli.main import app; app([sys.argv[1]], standalone_mode=False); "
        "print(*(m for m in sys.modules if m.startswith(('mqis.', 'rich'))), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, option], capture_output=True, check=True, text=True
    )
    loaded = {name for name in done.stderr.split() if not name.startswith("mqis.wire")}
    small = {"completing", "failures", "main", "parameters", "registry", option.strip("-")} - {
        "help"
    }
    assert loaded == {"mqis.cli", *(f"mqis.cli.{name}" for name in small)}


def test_clients_load_no_part_of_a_server_and_no_pyspnego() -> None:
    """Both take longer to load than an anonymous command takes to run."""
    clients = "change, init, join, pipeline, query, remote, status, up"
    script = f"import sys; from mqis.cli import {clients}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    servers = {"mqis.server.replication", "mqis.server.logon", "mqis.protocol.node.node"}
    assert {*servers, "spnego"} & set(done.stdout.split()) == set()


def test_a_server_loads_only_what_every_server_needs() -> None:
    """Logons, undelete, LDAP, clients and tables wait until something asks for them."""
    script = "import sys; from mqis.cli import serve; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    seldom = {
        "http.client",
        "mqis.protocol.ldap.urls",
        "mqis.runtime.rpc.rpc_client",
        "mqis.server.undeletion.undelete_service",
        "mqis.wire.ldap.changes",
        "rich",
        "spnego",
    }
    assert seldom & set(done.stdout.split()) == set()
