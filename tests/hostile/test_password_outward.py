"""Passwords on their way out: no server gets one by itself, and none is read that others can read.

Scripted LDAP servers keep each message that they get, and every byte is searched for the password.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import Result

from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.config.stores import open_store
from mqis.enterprise.plan import load_plan
from mqis.enterprise.setup import make_accounts
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ldap import ScriptedAnswer, ScriptedDirectory, entry
from mqis.wire.errors import MqisError
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import ExtendedRequest, SaslBind, SearchRequest, SimpleBind
from mqis.wire.ldap.responses import (
    BindResponse,
    ExtendedResponse,
    LdapResult,
    SearchDone,
    SearchReference,
)
from tests.cli.commands import run
from tests.runtime.ldap.certificates import server_context
from tests.waiting import in_time

USER, SECRET = "mqis@corp.example", "correct horse battery"
ROOT = entry(
    "",
    defaultNamingContext=b"DC=x",
    configurationNamingContext=b"CN=Configuration,DC=x",
    schemaNamingContext=b"CN=Schema,CN=Configuration,DC=x",
)


@dataclass
class Recorder(ScriptedDirectory):
    """A server that offers only simple binds, and keeps what it got."""

    def __post_init__(self) -> None:
        self.entries = [ROOT]
        self.users = {USER: SECRET.encode()}

    @property
    def kinds(self) -> set[type]:
        return {type(message.operation) for message in self.received}

    @property
    def got(self) -> bytes:
        return b"".join(message.encode() for message in self.received)


@dataclass
class Case:
    """What a caller meets, and the words that tell it."""

    name: str
    told: str
    url: str = "ldaps://127.0.0.1:{port}"
    ldaps: bool = True
    host: str = "127.0.0.1"
    expired: bool = False
    start_tls: bool = False
    script: Callable[[LdapMessage], ScriptedAnswer | None] | None = None
    srv: str = ""
    #: The kinds of the messages that arrive in this case.
    arrives: set[type] = field(default_factory=set)


def _no_start_tls(message: LdapMessage) -> ScriptedAnswer | None:
    if isinstance(message.operation, ExtendedRequest):
        return [ExtendedResponse(LdapResult(ResultCode.PROTOCOL_ERROR))]
    return None


def _only_simple_inside_tls(message: LdapMessage) -> ScriptedAnswer | None:
    """As Samba up to 4.20 by default."""
    if isinstance(message.operation, SaslBind):
        return [BindResponse(LdapResult(ResultCode.STRONGER_AUTH_REQUIRED))]
    return None


CASES = [
    Case("only simple", "knows neither Kerberos nor NTLM.*--simple", arrives={SaslBind}),
    Case("a name that DNS gave", "knows neither Kerberos nor NTLM.*--simple",
         url="ldaps://:{port}/DC=corp,DC=example", srv="dc1.corp.example", arrives={SaslBind}),
    Case("no TLS", "knows neither Kerberos nor NTLM.*--simple",
         url="ldap://127.0.0.1:{port}", ldaps=False, arrives={SaslBind}),
    Case("not inside TLS", "refuses Kerberos and NTLM inside TLS: use ldap://.*--simple",
         script=_only_simple_inside_tls, arrives={SaslBind}),
    Case("another name", "is not for 127.0.0.1", host=""),
    Case("expired", "has expired", expired=True),
    Case("SRV outside", "outside corp.example",
         url="ldaps://:{port}/DC=corp,DC=example", srv="dc1.evil.example"),
    Case("StartTLS refused", "StartTLS: the directory refuses", url="ldap://127.0.0.1:{port}",
         ldaps=False, start_tls=True, script=_no_start_tls, arrives={ExtendedRequest}),
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a password file and an empty store."""
    (tmp_path / "pw").write_text(f"{SECRET}\n")
    (tmp_path / "pw").chmod(0o600)
    open_store(f"sqlite:{tmp_path / 'd.db'}", create=True).close()
    monkeypatch.setenv("MQIS_LDAP_USER", USER)
    monkeypatch.setenv("MQIS_LDAP_PASSWORD_FILE", str(tmp_path / "pw"))
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))  # no KDC is asked
    (tmp_path / "krb5.conf").write_text("[libdefaults]\n dns_lookup_kdc = false\n")
    return tmp_path


#: Every command that speaks LDAP; for the last one, a server's configuration names the URL.
COMMANDS: dict[str, tuple[str, ...]] = {
    "import": ("import", "URL", "--store", "new.db"),
    "mirror": ("mirror", "URL", "--store", "new.db", "--once"),
    "publish": ("publish", "URL", "--store", "d.db", "--write"),
    "estate check": ("estate", "check", "URL"),
    "doctor": ("doctor", "--config", "mqis.toml"),
}


def meet(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, attempt: Callable[[str], Any]
) -> tuple[Recorder, Any]:
    """Runs something against the server of a case; returns the server and the outcome."""
    tls = server_context(place, host=case.host, expired=case.expired)
    monkeypatch.setenv("SSL_CERT_FILE", str(place / "ca.pem"))
    monkeypatch.chdir(place)
    if case.srv:
        _answer_as_dns(monkeypatch, case.srv)

    async def meeting() -> tuple[Recorder, Any]:
        server = Recorder(tls=tls if case.ldaps else None, ldaps=case.ldaps)
        server.on_message = case.script
        async with server:
            url = case.url.format(port=server.port)
            (place / "mqis.toml").write_text(
                f'[store]\nurl = "{url}"\nuser = "{USER}"\npassword_file = "pw"\n'
                f'ca_file = "ca.pem"\ntimeout_s = 20\n[rpc]\nmapper = false\n'
            )
            (place / "mqis.toml").chmod(0o600)
            return server, await asyncio.to_thread(attempt, url)

    return asyncio.run(in_time(meeting()))


def _answer_as_dns(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """DNS names one server, and each name leads to this computer."""
    record = SimpleNamespace(priority=0, weight=0, target=f"{host}.", port=636)

    async def resolve(_name: str, kind: str, lifetime: float) -> list[SimpleNamespace]:
        assert kind == "SRV"
        return [record]

    fake = SimpleNamespace(
        asyncresolver=SimpleNamespace(resolve=resolve),
        exception=SimpleNamespace(DNSException=LookupError),
    )
    monkeypatch.setitem(sys.modules, "dns", fake)
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _host, *rest, **more: real("127.0.0.1", *rest, **more)
    )


def said(outcome: Result) -> str:
    text = f"{outcome.output} {outcome.exception or ''}"
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "case"),
    [
        pytest.param(command, case, id=f"{command}: {case.name}")
        for command in COMMANDS
        for case in CASES
        if command != "doctor" or not case.start_tls  # a server's configuration has no StartTLS
    ],
)
@pytest.mark.req("SEC-22-01")
def test_no_command_sends_the_password_without_simple(
    command: str, case: Case, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(url: str) -> Result:
        words = [url if word == "URL" else word for word in COMMANDS[command]]
        return run(*words, *(["--start-tls"] if case.start_tls else []))

    server, outcome = meet(case, place, monkeypatch, attempt)
    assert outcome.exit_code != 0
    assert re.search(case.told, said(outcome)), said(outcome)
    assert server.kinds == case.arrives
    assert SECRET.encode() not in server.got
    assert SECRET not in outcome.output


@pytest.mark.parametrize("case", CASES[:4], ids=lambda case: case.name)
@pytest.mark.req("SEC-22-01")
def test_no_server_sends_the_password_without_simple(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'mqis serve' whose store is an Active Directory."""

    def attempt(_url: str) -> str:
        async def serve() -> None:
            async with DirectoryServer(load(place / "mqis.toml")):
                raise AssertionError("it is no Active Directory")

        with pytest.raises(MqisError) as caught:
            asyncio.run(serve())
        return str(caught.value)

    server, told = meet(case, place, monkeypatch, attempt)
    assert re.search(case.told, told), told
    assert server.kinds == case.arrives
    assert SECRET.encode() not in server.got


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.req("SEC-22-02")
def test_a_simple_bind_is_made_if_it_is_asked_for(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(url: str) -> Result:
        if command == "doctor":
            config = place / "mqis.toml"
            config.write_text(config.read_text().replace("[store]", "[store]\nsimple = true"))
            return run(*COMMANDS[command])
        return run(*(url if word == "URL" else word for word in COMMANDS[command]), "--simple")

    server, _ = meet(CASES[0], place, monkeypatch, attempt)
    binds = set(server.operations(SimpleBind))
    assert binds == {SimpleBind(USER, SECRET.encode())}
    assert server.operations(SaslBind) == []


@pytest.mark.parametrize("start_tls", [True, False])
@pytest.mark.req("SEC-22-02")
def test_a_simple_bind_happens_inside_tls_only(
    start_tls: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if it was asked for, and not if the server refuses StartTLS."""
    case = CASES[-1] if start_tls else CASES[2]

    def attempt(url: str) -> Result:
        more = ["--start-tls"] if start_tls else []
        return run("import", url, "--store", "new.db", "--simple", *more)

    server, outcome = meet(case, place, monkeypatch, attempt)
    told = "StartTLS: the directory refuses" if start_tls else "a simple bind without TLS would"
    assert told in said(outcome)
    assert server.operations(SimpleBind) == []
    assert SECRET.encode() not in server.got


def test_simple_is_an_option_of_its_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    start = ("import", "ldaps://127.0.0.1:1", "--store", "new.db")
    assert "'simple' is not one of" in said(run(*start, "--method", "simple"))
    assert "exclude each other" in said(run(*start, "--simple", "--method", "ntlm"))
    assert "--simple needs --user" in said(run(*start, "--simple", "--user", ""))


@pytest.mark.parametrize("options", [("--simple",), ("--method", "anonymous")], ids=" ".join)
@pytest.mark.parametrize("command", ["import", "mirror", "publish", "estate check"])
@pytest.mark.req("SEC-22-03")
def test_a_referral_leads_nowhere(
    command: str, options: tuple[str, ...], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that may have the password names another host, which would have got it too."""
    tls = server_context(place)
    monkeypatch.setenv("SSL_CERT_FILE", str(place / "ca.pem"))
    monkeypatch.chdir(place)

    async def meeting() -> tuple[Recorder, Recorder, Result]:
        outside = Recorder(tls=tls, ldaps=True)
        async with outside, Recorder(tls=tls, ldaps=True) as server:
            server.on_message = referring(outside.url)
            words = [server.url if word == "URL" else word for word in COMMANDS[command]]
            return outside, server, await asyncio.to_thread(run, *words, *options)

    outside, server, _ = asyncio.run(in_time(meeting()))
    assert len(server.operations(SearchRequest)) > 1, "the command met no referral"
    assert outside.connections == 0
    assert outside.got == b""


def referring(url: str) -> Callable[[LdapMessage], ScriptedAnswer | None]:
    """Refers to another server, beside the root and instead of every other answer."""

    def answer(message: LdapMessage) -> ScriptedAnswer | None:
        match message.operation:
            case SearchRequest(""):
                return [ROOT, SearchReference((f"{url}/DC=y",)), SearchDone()]
            case SearchRequest():
                code = ResultCode.REFERRAL
                return [SearchDone(LdapResult(code, referrals=(f"{url}/DC=y",)))]
        return None

    return answer


def test_a_distinguished_name_is_for_simple_binds(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQIS_LDAP_USER", "CN=mqis,CN=Users,DC=corp,DC=example")
    case = replace(CASES[0], told="", arrives=set())
    server, outcome = meet(
        *(case, place, monkeypatch), lambda url: run("import", url, "--store", "new.db")
    )
    assert "write NAME@DOMAIN or DOMAIN\\NAME" in said(outcome)
    assert server.received == []


# --- password files -------------------------------------------------------------------------------

PLAN = """
[enterprise]
name = "Acme"
[[site]]
name = "Delft"
[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"
[[account]]
name = "admin"
administrator = true
password_file = "pw"
"""


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
@pytest.mark.parametrize(
    "words",
    [
        ("get", "site", "Delft", "--server", "127.0.0.1:1", "--user", "LAB\\alice"),
        ("servers", "--server", "127.0.0.1:1", "--user", "LAB\\alice"),
        ("import", "ldap://127.0.0.1:1", "--store", "new.db", "--user", USER),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.req("SEC-23-01")
def test_a_password_file_that_others_may_open_is_not_used(
    words: tuple[str, ...], mode: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("MQIS_PASSWORD_FILE", "pw")
    monkeypatch.setenv("MQIS_LDAP_PASSWORD_FILE", "pw")
    (place / "pw").chmod(mode)
    outcome = run(*words)
    assert outcome.exit_code != 0
    assert re.search(r"pw: others may read this password; chmod 600 \S*pw", said(outcome))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
@pytest.mark.req("SEC-23-01")
def test_no_account_of_an_enterprise_gets_a_password_that_others_may_read(
    mode: int, place: Path
) -> None:
    """The step in which 'mqis up' makes the accounts of an enterprise file."""
    (place / "enterprise.toml").write_text(PLAN)
    plan = load_plan(place / "enterprise.toml")
    (place / "pw").chmod(mode)
    with pytest.raises(ConfigError, match=r"pw: others may read this password; chmod 600 "):
        make_accounts(place, plan, place)
    assert not (place / "accounts.toml").exists()
    (place / "pw").chmod(0o600)
    make_accounts(place, plan, place)
    assert (place / "accounts.toml").exists()
