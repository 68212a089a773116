"""``mqis account`` as a user types it."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mqis.cli.account import app
from mqis.runtime.authentication.account import nt_hash
from mqis.server.accounts import AccountsFile
from tests.cli.commands import process
from tests.waiting import DEADLINE_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "accounts.toml"


def mqis(path: Path, *arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, [*arguments, "--accounts", str(path)], input=stdin)


def refused(path: Path, *arguments: str, stdin: str = "") -> str:
    """The one line of an error."""
    done = process("account", *arguments, "--accounts", path, stdin=stdin.encode())
    assert done.returncode == 1
    assert done.stdout == b""
    told = done.stderr.decode()
    assert told.startswith("mqis: ")
    assert told.count("\n") == 1
    return told


def test_add_reads_the_password_from_the_standard_input(path: Path) -> None:
    groups = ("--group", "S-1-5-32-544", "--group", "S-1-5-32-545")
    result = mqis(path, "add", "alice", "--domain", "LAB", *groups, stdin="pass word \nrest\n")
    assert result.exit_code == 0, result.output
    account = AccountsFile(path).find("LAB", "alice")
    assert account is not None
    assert account.nt_hash == nt_hash("pass word ")
    assert {str(group) for group in account.groups} == {"S-1-5-32-544", "S-1-5-32-545"}
    assert result.output == f"added LAB\\alice ({account.sid})\n"


def test_add_and_remove_for_programs(path: Path) -> None:
    added = json.loads(mqis(path, "add", "bob", "--json", stdin="pw\n").output)
    (account,) = AccountsFile(path).accounts()
    assert (added["done"], added["name"], added["sid"]) == ("added", "bob", str(account.sid))
    assert json.loads(mqis(path, "remove", "bob", "--json").output) == added | {"done": "removed"}


def test_add_with_a_sid(path: Path) -> None:
    mqis(path, "add", "bob", "--sid", "S-1-5-21-1-2-3-4", stdin="pw\n")
    assert [str(account.sid) for account in AccountsFile(path).accounts()] == ["S-1-5-21-1-2-3-4"]


@pytest.mark.parametrize("option", ["--sid", "--group"])
def test_what_is_not_a_sid_is_a_usage_error(path: Path, option: str) -> None:
    result = mqis(path, "add", "bob", option, "Administrators", stdin="pw\n")
    assert result.exit_code == 2
    assert "is not a SID" in " ".join(result.output.split())
    assert not path.exists()


def test_a_password_is_no_argument(path: Path) -> None:
    assert mqis(path, "add", "bob", "secret", stdin="pw\n").exit_code == 2
    assert mqis(path, "add", "bob", "--password", "secret", stdin="pw\n").exit_code == 2


def test_list(path: Path) -> None:
    mqis(path, "add", "alice", "--domain", "LAB", "--group", "S-1-5-32-544", stdin="pw\n")
    mqis(path, "add", "bob", stdin="pw\n")
    alice, bob = AccountsFile(path).accounts()
    plain = mqis(path, "list")
    assert plain.output.splitlines() == [
        f"LAB\\alice  {alice.sid}  S-1-5-32-544",
        f"bob        {bob.sid}",
    ]
    as_json = mqis(path, "list", "--json")
    assert json.loads(as_json.output) == [
        {"domain": "LAB", "name": "alice", "sid": str(alice.sid), "groups": ["S-1-5-32-544"]},
        {"domain": "", "name": "bob", "sid": str(bob.sid), "groups": []},
    ]
    for output in (plain.output, as_json.output):
        assert nt_hash("pw").hex() not in output.lower()


def test_remove(path: Path) -> None:
    mqis(path, "add", "alice", "--domain", "LAB", stdin="pw\n")
    assert mqis(path, "remove", "alice").exit_code == 1
    result = mqis(path, "remove", "alice", "--domain", "lab")
    assert result.exit_code == 0
    assert result.output.startswith("removed LAB\\alice (S-1-5-21-")
    assert AccountsFile(path).accounts() == ()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["add", "alice"], "exists already"),
        (["add", "a/b"], "cannot hold '/'"),
        (["remove", "nobody"], "there is no account nobody"),
    ],
)
def test_errors_are_one_line_and_exit_1(path: Path, arguments: list[str], reason: str) -> None:
    mqis(path, "add", "alice", stdin="pw\n")
    assert reason in refused(path, *arguments, stdin="pw\n")


def test_no_password_at_all(path: Path) -> None:
    assert "password" in refused(path, "add", "alice")
    assert not path.exists()


def test_a_file_that_others_may_read(path: Path) -> None:
    mqis(path, "add", "alice", stdin="pw\n")
    path.chmod(0o644)
    assert "chmod 600" in refused(path, "list")


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self.end, theirs = pty.openpty()
        command = "from mqis.cli.account import app; app()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = b""

    def wait_for(self, text: bytes) -> None:
        while text not in self.seen:
            ready, _, _ = select.select([self.end], [], [], DEADLINE_S)
            assert ready, self.seen
            self.seen += os.read(self.end, 1000)

    def type_passwords(self, first: bytes, second: bytes) -> None:
        # The blank after the colon comes when the echo is off.
        self.wait_for(b"Password: ")
        os.write(self.end, first + b"\n")
        self.wait_for(b"confirmation: ")
        os.write(self.end, second + b"\n")


@pytest.fixture
def terminal(path: Path) -> Iterator[Terminal]:
    terminal = Terminal("add", "alice", "--accounts", str(path))
    yield terminal
    terminal.process.kill()
    terminal.process.wait()
    os.close(terminal.end)


def test_at_a_terminal_it_is_typed_twice_and_not_shown(path: Path, terminal: Terminal) -> None:
    terminal.type_passwords(b"geheim", b"geheim")
    terminal.wait_for(b"added alice")
    assert terminal.process.wait() == 0
    assert b"geheim" not in terminal.seen
    account = AccountsFile(path).find("", "alice")
    assert account is not None
    assert account.nt_hash == nt_hash("geheim")


def test_two_passwords_that_differ(path: Path, terminal: Terminal) -> None:
    terminal.type_passwords(b"geheim", b"gehiem")
    terminal.wait_for(b"do not match")
    assert not path.exists()


def test_a_password_is_changed_and_the_rest_stays(path: Path) -> None:
    mqis(path, "add", "alice", "--domain", "LAB", "--group", "S-1-5-32-544", stdin="old\n")
    before = AccountsFile(path).find("LAB", "alice")
    assert before is not None
    told = mqis(path, "password", "alice", "--domain", "LAB", stdin="new\n")
    assert told.output == f"changed LAB\\alice ({before.sid})\n"
    after = AccountsFile(path).find("LAB", "alice")
    assert after is not None
    assert after.nt_hash == nt_hash("new") != before.nt_hash
    assert (after.sid, after.groups) == (before.sid, before.groups)
    for words, stdin, reason in (
        (("alice",), "x\n", "there is no account alice"),
        (("alice", "--domain", "LAB"), "\n", "needs a password"),
    ):
        assert reason in refused(path, "password", *words, stdin=stdin)
    assert AccountsFile(path).find("LAB", "alice") == after
