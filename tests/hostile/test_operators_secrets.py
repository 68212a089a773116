"""Secrets of an operator: on command lines, in files of others, and on the way to a browser."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from mqis.cli.diff import ServerSides
from mqis.config.stores import open_store
from mqis.enterprise.setup import Administrator
from mqis.places.address import RemoteAddress
from mqis.protocol.ldap.errors import LdapViolation
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.authentication.account import Account
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.ntlm_protection import NtlmSession
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import LdapLogin
from mqis.runtime.ldap.searching import MOST_REFERENCES, SearchOutcome
from mqis.runtime.ldap.settings import LdapSettings
from mqis.runtime.ldap.spnego import SpnegoUser
from mqis.testing.ldap import ScriptedAnswer, ScriptedDirectory, entry
from mqis.views.console.visitor_rights import Proof
from mqis.web.console_settings import ConsoleSettings
from mqis.wire.errors import MqisError
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SaslBind, SearchRequest, SimpleBind
from mqis.wire.ldap.responses import BindResponse, LdapResult, SearchDone, SearchReference
from tests.cli.commands import run

SECRET = "hunter2hunter2"


# --- texts of objects -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("holder", "secret"),
    [
        (Account, "nt_hash"),
        (Administrator, "password"),
        (BindResponse, "token"),
        (ConsoleSettings, "token"),
        (LdapLogin, "password"),
        (LogonCredentials, "nt_hash"),
        (LogonCredentials, "password"),
        (NtlmSession, "key"),
        (Proof, "secret"),
        (RemoteAddress, "secrets"),
        (SaslBind, "token"),
        (ServerSides, "secrets"),
        (SimpleBind, "password"),
        (SpnegoUser, "password"),
    ],
)
def test_the_text_of_an_object_shows_no_secret(holder: type[Any], secret: str) -> None:
    """It may stand in a traceback or in a log line."""
    shown = {field.name: field.repr for field in fields(holder)}
    assert shown[secret] is False


# --- command lines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://AKIA:{SECRET}@bucket/journals",
        f"s3a://AKIA:{SECRET}@bucket/journals",
        f"s3://bucket/journals?access_key=AKIA&secret_key={SECRET}",
        f"s3://bucket?endpoint_override=127.0.0.1:9&session_token={SECRET}",
        f"S3://bucket/x?secret_key={SECRET}",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("journal", "restore", "URI", "new"),
        ("journal", "check", "URI"),
        ("journal", "archive", ".", "URI"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
@pytest.mark.req("SEC-13-05")
def test_no_command_takes_a_secret_in_a_uri(
    command: tuple[str, ...], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [uri if word == "URI" else word for word in command]
    done = run(*words)
    told = " ".join(done.stderr.replace("│", " ").split())
    assert done.exit_code == 2
    assert "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in told
    assert SECRET not in done.output
    assert list(tmp_path.iterdir()) == []


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
@pytest.mark.req("SEC-15-07")
def test_a_password_file_of_others_is_refused(mode: int, tmp_path: Path) -> None:
    """By 'mqis serve' as by every other command that logs on to an Active Directory."""
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    file.chmod(mode)
    config = tmp_path / "mqis.toml"
    config.write_text(
        '[server]\nname = "del-dir1"\n[store]\nurl = "ldaps://127.0.0.1:9"\n'
        'user = "a@corp.example"\npassword_file = "password"\n'
    )
    config.chmod(0o600)
    served = run("serve", "--config", config)
    options = ("--store", tmp_path / "new.db", "--user", "a@corp.example")
    imported = run("import", "ldaps://127.0.0.1:9", *options, "--password-file", file)
    for done in (served, imported):
        assert isinstance(done.exception, MqisError)
        assert "password: others may read this password; chmod 600" in str(done.exception)
        assert SECRET not in str(done.exception)


# --- a domain controller --------------------------------------------------------------------------


#: So long that 1,500 of it would be more than may be kept.
ONE = f"ldap://dc/DC={'y' * 1000}"


async def searched(repeated: bool) -> SearchOutcome:
    """A search at a domain controller that refers to 1,500 others, or as often to one."""

    def flood(message: LdapMessage) -> ScriptedAnswer | None:
        if not isinstance(message.operation, SearchRequest):
            return None
        others = (ONE if repeated else f"ldap://dc/DC={n}" for n in range(1500))
        done = SearchDone(LdapResult(ResultCode.SUCCESS))
        return [*(SearchReference((uri,)) for uri in others), done]

    outcome = SearchOutcome()
    async with ScriptedDirectory([entry("DC=x", dc=b"x")]) as server:
        server.on_message = flood
        settings = LdapSettings((LdapUrl.parse(server.url),))
        client = LdapDirectoryClient(DomainControllers(settings))
        try:
            assert [found async for found in client.search(LdapQuery("DC=x"), outcome)] == []
        finally:
            await client.close()
            assert len(outcome.references) <= MOST_REFERENCES
    return outcome


@pytest.mark.req("SEC-15-08")
def test_references_without_end_do_not_fill_the_memory() -> None:
    with pytest.raises(LdapViolation, match="a search has more than 1,000 references"):
        asyncio.run(searched(repeated=False))


@pytest.mark.req("SEC-15-08")
def test_the_same_reference_again_is_kept_once() -> None:
    assert asyncio.run(searched(repeated=True)).references == [(ONE,)]


# --- the console ----------------------------------------------------------------------------------


@pytest.mark.req("SEC-12-18")
def test_a_console_without_tls_that_others_can_reach_says_so(tmp_path: Path) -> None:
    store = tmp_path / "d.db"
    open_store(str(store), create=True).close()
    where = ["--listen", "0.0.0.0", "--allow-remote", "--port", "0"]
    words = ["console", *where, "--store", store, "--json"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MQIS_")}
    started = subprocess.Popen(
        [sys.executable, "-m", "mqis.cli.main", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert started.stdout is not None
    assert started.stderr is not None
    with started:
        line = started.stdout.readline()
        started.send_signal(signal.SIGINT)
        errors = started.stderr.read()
    assert b'"url": "http://' in line
    assert b"0.0.0.0 can be reached from other computers, and there is no --certificate" in errors
    assert b"clear text" in errors
