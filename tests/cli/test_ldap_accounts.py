"""A password in an LDAP URL is never repeated, and the answer says where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.config.stores import directory_urls, open_store
from mqis.protocol.ldap.urls import LdapUrl
from mqis.wire.errors import MqisError
from tests.cli.commands import process

SECRET = "SECRETpw"


@pytest.mark.parametrize(
    "command",
    [
        ("estate", "check", "URL"),
        ("lookup", "queue", "-s", "URL"),
        ("check", "URL"),
        ("diff", "URL", "x.jsonl"),
        ("import", "URL", "--store", "x.db"),
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    "url",
    [
        f"ldaps://u:{SECRET}@dc",
        f"LDAP://CORP%5Cu:{SECRET}@dc/DC=x",
        f"ldaps://u:12345/{SECRET}@dc",
    ],
)
def test_no_command_repeats_a_password(
    command: tuple[str, ...], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = process(*(url if word == "URL" else word for word in command))
    text = " ".join((done.stdout + done.stderr).decode().replace("│", " ").split())
    assert done.returncode == 2, text
    assert SECRET not in text
    assert "a password on the command line is shown to everybody" in text
    assert "--password-file" in text


@pytest.mark.parametrize(
    "url",
    [
        f"ldaps://u:{SECRET}@dc",
        f"ldaps://u:{SECRET}/more@dc",
        f"ldaps://u:{SECRET}?x#y@dc",
        f"ldaps://u:{SECRET}@x@dc",
        f"ldaps://ok ldaps://u:{SECRET} more@dc",
        # The first part of the password looks like a port, and the rest like a path.
        f"ldaps://u:12345/{SECRET}@dc",
        f"ldaps://u:99999/{SECRET}@dc",
        f"ldaps://u:12345/%{SECRET}@dc",
        f"ldaps://u:12345/?{SECRET}@dc",
        f"ldaps://u:12345/x??{SECRET}@dc",
        f"ldaps://u:12345/???{SECRET}@dc",
        f"ldaps://{SECRET}/x@dc",
    ],
)
def test_no_error_repeats_one(url: str) -> None:
    for reads in (LdapUrl.parse, directory_urls, open_store):
        with pytest.raises(MqisError) as refused:
            reads(url)
        text = str(refused.value)
        assert SECRET not in text, reads
        assert "12345" not in text
        assert "\n" not in text


def test_an_at_sign_behind_the_host_is_no_account() -> None:
    url = "ldap://dc1/CN=a@b,DC=corp??sub?(mail=a@b)"
    assert LdapUrl.parse(url).base == "CN=a@b,DC=corp"
    assert LdapUrl.parse("ldap://dc1:3268/CN=a@b??sub").port == 3268
    assert LdapUrl.parse("ldap://dc1:389/???(mail=a@b)").host == "dc1"
    done = process("estate", "check", "ldap://127.0.0.1:1/CN=a@b")
    assert b"a password on the command line" not in done.stderr
