"""The accounts file: what it keeps, whom it shows it to, and what survives."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from mqis.config.errors import ConfigError
from mqis.protocol.authentication import AuthenticationError, AuthType
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.server.accounts import AccountsFile
from mqis.wire.security.sid import ADMINISTRATORS, USERS, Sid
from tests.runtime.authentication.pairs import connect

GIVEN = Sid.parse("S-1-5-21-7-8-9-500")


@pytest.fixture
def file(tmp_path: Path) -> AccountsFile:
    return AccountsFile(tmp_path / "accounts.toml")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_added_is_found_in_any_case(file: AccountsFile) -> None:
    alice = file.add("Alice", "pw", domain="LAB", groups=[ADMINISTRATORS, USERS])
    bob = file.add("bob", "pw2", sid=GIVEN)
    assert alice.nt_hash == nt_hash("pw")
    assert alice.groups == {ADMINISTRATORS, USERS}
    assert bob.sid == GIVEN
    again = AccountsFile(file.path)
    assert again.accounts() == (alice, bob)
    assert again.find("lab", "ALICE") == alice
    assert again.find("", "BOB") == bob
    assert again.find("", "alice") is None
    assert again.find("LAB", "bob") is None


def test_names_that_need_quoting(file: AccountsFile) -> None:
    names = ["Jürgen Müß", "o'neil", "名前", "a.b-c_d$"]
    made = tuple(file.add(name, "pw", domain='d"é') for name in names)
    assert AccountsFile(file.path).accounts() == made


def test_sids_share_an_authority_and_are_never_given_twice(file: AccountsFile) -> None:
    first = file.add("a", "pw").sid
    second = file.add("b", "pw").sid
    assert str(first).startswith("S-1-5-21-")
    assert len(first.sub_authorities) == 5
    assert first.sub_authorities[:-1] == second.sub_authorities[:-1]
    assert (first.sub_authorities[-1], second.sub_authorities[-1]) == (1000, 1001)
    file.remove("b")
    assert file.add("c", "pw").sid.sub_authorities[-1] == 1002
    given = Sid(5, (*first.sub_authorities[:-1], 2000))
    file.add("d", "pw", sid=given)
    assert file.add("e", "pw").sid.sub_authorities[-1] == 2001


def test_two_files_have_two_authorities(tmp_path: Path) -> None:
    made = [AccountsFile(tmp_path / name).add("a", "pw").sid for name in ("one", "two")]
    assert made[0] != made[1]


def test_duplicates_are_refused_and_change_nothing(file: AccountsFile) -> None:
    file.add("alice", "pw", domain="LAB", sid=GIVEN)
    before = file.path.read_bytes()
    with pytest.raises(ConfigError, match=r"LAB\\alice exists already"):
        file.add("ALICE", "other", domain="lab")
    with pytest.raises(ConfigError, match="is the SID of"):
        file.add("bob", "pw", sid=GIVEN)
    assert file.path.read_bytes() == before


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\\b", "a@b", "a:b", "a\nb", "a\0", " a", 'a"b'])
def test_names_that_cannot_be(file: AccountsFile, name: str) -> None:
    with pytest.raises(ConfigError):
        file.add(name, "pw")
    with pytest.raises(ConfigError):
        file.add("fine", "pw", domain=(name.strip() or "x") + "\\")
    assert not file.path.exists()


def test_an_empty_password_is_none(file: AccountsFile) -> None:
    with pytest.raises(ConfigError, match="password"):
        file.add("alice", "")


def test_remove(file: AccountsFile) -> None:
    alice = file.add("alice", "pw", domain="LAB")
    bob = file.add("bob", "pw")
    with pytest.raises(ConfigError, match="no account alice"):
        file.remove("alice")
    assert file.remove("ALICE", "lab") == alice
    assert file.accounts() == (bob,)
    with pytest.raises(ConfigError, match=r"no account LAB\\alice"):
        file.remove("alice", "LAB")


# --- the file itself ------------------------------------------------------------------------------


def test_only_its_owner_may_read_it(file: AccountsFile) -> None:
    old = os.umask(0)
    try:
        file.add("alice", "pw")
        assert mode(file.path) == 0o600
        file.add("bob", "pw")
        assert mode(file.path) == 0o600
    finally:
        os.umask(old)


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o644, 0o610, 0o601])
def test_a_file_that_others_may_read_is_refused(file: AccountsFile, bits: int) -> None:
    file.add("alice", "pw")
    before = file.path.read_bytes()
    file.path.chmod(bits)
    for use in (
        file.accounts,
        lambda: AccountsFile(file.path).find("", "alice"),
        lambda: file.add("bob", "pw"),
        lambda: file.remove("alice"),
    ):
        with pytest.raises(ConfigError, match=rf"mode {bits:04o}.*chmod 600"):
            use()
    assert file.path.read_bytes() == before
    file.path.chmod(0o600)
    assert file.find("", "alice") is not None


def test_nothing_else_is_left_in_the_directory(file: AccountsFile) -> None:
    file.add("alice", "pw")
    file.remove("alice")
    assert [path.name for path in file.path.parent.iterdir()] == ["accounts.toml"]


def test_the_password_is_not_in_the_file(file: AccountsFile) -> None:
    file.add("alice", "correct horse")
    assert b"correct" not in file.path.read_bytes()


def test_a_failed_write_leaves_the_old_file(
    file: AccountsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.add("alice", "pw")
    before = file.path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left"):
        file.add("bob", "pw")
    assert file.path.read_bytes() == before
    assert len(list(file.path.parent.iterdir())) == 1


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "accounts.toml"
    link.symlink_to(tmp_path / "real" / "accounts.toml")
    AccountsFile(link).add("alice", "pw")
    AccountsFile(link).add("bob", "pw")
    assert link.is_symlink()
    assert len(AccountsFile(tmp_path / "real" / "accounts.toml").accounts()) == 2


def test_a_missing_file_says_what_makes_one(file: AccountsFile) -> None:
    for use in (file.accounts, lambda: file.find("", "a"), lambda: file.remove("a")):
        with pytest.raises(ConfigError, match="'mqis account add' makes it"):
            use()


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file or directory"):
        AccountsFile(tmp_path / "nowhere" / "accounts.toml").add("alice", "pw")


def test_commands_at_the_same_time_lose_nothing(file: AccountsFile) -> None:
    together = Barrier(4)

    def command(name: str) -> None:
        together.wait()
        for number in range(5):
            AccountsFile(file.path).add(f"{name}{number}", "pw")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(command, "abcd"))
    assert len(file.accounts()) == 20
    assert len({account.sid for account in file.accounts()}) == 20


ENTRY = '[[account]]\nname = "a"\nsid = "S-1-5-7"\nnt_hash = "' + "ab" * 16 + '"\n'
HEAD = 'domain_sid = "S-1-5-21-1-2-3"\n'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("name = ", "not valid TOML"),
        ("\xff", "domain_sid|not valid TOML"),
        (ENTRY, "domain_sid: must be a SID"),
        ('domain_sid = "x"\n', "domain_sid: 'x' is not a SID"),
        (HEAD + "next_rid = -1\n", "next_rid"),
        (HEAD + "next_rid = true\n", "next_rid"),
        (HEAD + "color = 1\n", "color: no such key"),
        (HEAD + "account = 1\n", r"write \[\[account\]\]"),
        (HEAD + "account = [1]\n", "account 1: must be a table"),
        (HEAD + ENTRY + "shell = 1\n", "account 1: shell: no such key"),
        (HEAD + ENTRY.replace('"a"', "1"), "account 1: name: must be text"),
        (HEAD + ENTRY.replace('"a"', '""'), "account 1: an account needs a name"),
        (HEAD + ENTRY.replace("S-1-5-7", "S-2"), "account 1: sid: 'S-2' is not a SID"),
        (HEAD + ENTRY + "groups = 1\n", "account 1: groups: must be a list"),
        (HEAD + ENTRY + 'groups = ["x"]\n', "account 1: groups: 'x' is not a SID"),
        (HEAD + ENTRY + ENTRY, "account 2: the account a exists already"),
    ],
)
def test_a_file_that_says_nonsense(file: AccountsFile, content: str, reason: str) -> None:
    file.path.write_text(content, encoding="utf-8")
    file.path.chmod(0o600)
    with pytest.raises(ConfigError, match=reason) as caught:
        file.accounts()
    assert str(file.path) in str(caught.value)


@pytest.mark.parametrize("value", ['"' + "ab" * 15 + '"', '"' + "xy" * 16 + '"', "7"])
def test_a_hash_is_not_shown_even_if_it_is_wrong(file: AccountsFile, value: str) -> None:
    file.path.write_text(HEAD + ENTRY.replace('"' + "ab" * 16 + '"', value), encoding="utf-8")
    file.path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"account 1: .*(hash|hexadecimal)") as caught:
        file.accounts()
    assert value.strip('"') * 2 not in str(caught.value) * 2


# --- a server that uses it ------------------------------------------------------------------------


def test_a_running_server_sees_changes(file: AccountsFile) -> None:
    server = PyspnegoAuthenticator(AccountsFile(file.path), "SRV1", "LAB", names=["srv1.lab.test"])
    client = PyspnegoInitiator(LogonCredentials("alice", "LAB", password="pw"))

    def log_on() -> Account | None:
        acceptor = connect(AuthType.NTLM, 6, client, server)[1]
        identity = acceptor.identity
        assert identity is not None
        return file.find(identity.domain, identity.name)

    with pytest.raises(AuthenticationError, match=r"accounts\.toml"):
        log_on()
    alice = file.add("alice", "pw", domain="LAB")
    assert log_on() == alice
    file.remove("alice", "LAB")
    with pytest.raises(AuthenticationError, match="wrong password"):
        log_on()
