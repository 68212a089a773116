"""The logon of a pass-through server: its ways, and a refusal in the words of an administrator."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqis.cli.ldap_login import LdapLogonOptions
from mqis.config.errors import ConfigError
from mqis.config.file import load
from mqis.runtime.authentication import kerberos
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.server.directory_server import DirectoryServer
from mqis.server.pass_through import ldap_settings, service_tickets
from mqis.testing.activedirectory import ScriptedDomain
from mqis.views.doctor.activedirectory_checks import check
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import SaslBind
from mqis.wire.ldap.responses import BindResponse, LdapResult
from tests.server.test_activedirectory import configured
from tests.waiting import in_time

DIRECTORY = 'url = "ldaps://dc1.corp.example"\nuser = "mqis@corp.example"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mqis.toml"
    path.write_text(f'[server]\nname = "SRV1"\n[store]\n{text}')
    return path


def test_a_keytab_or_a_ticket_cache_takes_no_password(tmp_path: Path) -> None:
    config = load(written(tmp_path, DIRECTORY + 'keytab = "mqis.keytab"\n'))
    login = ldap_settings(config.store, {}).login
    assert (login.user, login.password) == ("mqis@corp.example", None)
    assert (login.chosen, login.keytab) == (BindMethod.KERBEROS, str(tmp_path / "mqis.keytab"))
    config = load(written(tmp_path, DIRECTORY + 'ticket_cache = "FILE:/run/cc"\n'))
    login = ldap_settings(config.store, {}).login
    assert (login.chosen, login.ccache, login.keytab) == (BindMethod.KERBEROS, "FILE:/run/cc", None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('keytab = "a"\nticket_cache = "b"\n', "store.keytab and store.ticket_cache exclude"),
        ('keytab = "a"\npassword_file = "b"\n', "store.keytab and store.password_file exclude"),
        ('ticket_cache = "a"\nsimple = true\n', "store.ticket_cache and store.simple exclude"),
        ('user = ""\nkeytab = "a"\n', "needs store.user"),
    ],
)
def test_ways_to_log_on_exclude_each_other(tmp_path: Path, text: str, reason: str) -> None:
    head = DIRECTORY if "user" not in text else DIRECTORY.splitlines(keepends=True)[0]
    config = load(written(tmp_path, head + text))
    with pytest.raises(ConfigError, match=reason):
        ldap_settings(config.store, {"MQIS_LDAP_PASSWORD": "x"})


def test_commands_log_on_by_tickets() -> None:
    made = LdapLogonOptions(user="a@corp.example", keytab=Path("/etc/a.keytab")).connecting("u")
    assert (made.method, made.keytab, made.ccache) == (BindMethod.KERBEROS, "/etc/a.keytab", None)
    made = LdapLogonOptions(ticket_cache="FILE:/run/cc").connecting("u")
    assert (made.method, made.keytab, made.ccache) == (BindMethod.KERBEROS, None, "FILE:/run/cc")
    wrong: tuple[dict[str, Any], ...] = (
        {"keytab": Path("a")},
        {"user": "a", "keytab": Path("a"), "ticket_cache": "b"},
        {"user": "a", "keytab": Path("a"), "password_file": Path("b")},
        {"ticket_cache": "b", "method": "ntlm"},
    )
    for options in wrong:
        with pytest.raises(Exception, match=r"exclude|needs|Kerberos"):
            LdapLogonOptions(**options).connecting("u")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("52e", "the user name or the password is wrong"),
        ("532", "the password has expired"),
        ("533", "the account is disabled"),
        ("701", "the account has expired"),
        ("773", "the password has to be changed first"),
        ("775", "the account is locked"),
        ("999", "the logon is refused"),
    ],
)
def test_the_doctor_says_in_words_why_a_logon_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, words: str
) -> None:
    monkeypatch.setenv("MQIS_LDAP_PASSWORD", "x")
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "none.conf"))

    def refuse(message: LdapMessage) -> Any:
        if not isinstance(message.operation, SaslBind):
            return None
        text = f"80090308: LdapErr: DSID-0C090447, comment: AcceptSecurity, data {number}, v1"
        return [BindResponse(LdapResult(ResultCode.INVALID_CREDENTIALS, "", text))]

    async def run() -> list[str]:
        async with ScriptedDomain.of() as server:
            server.on_message = refuse
            config = configured(server, tmp_path, user="CORP\\mqis")
            found = await asyncio.to_thread(lambda: list(check(config)))
            return [finding.what for finding in found]

    (text,) = asyncio.run(in_time(run()))
    assert f"CORP\\mqis: {words} (" in text
    assert f"data {number}" in text


@pytest.mark.parametrize(
    ("store", "security", "reason"),
    [
        ("", "", "set store.keytab or store.ticket_cache"),
        ('ticket_cache = "FILE:/run/cc"\n', "", "set security.keytab"),
    ],
)
def test_to_act_as_callers_takes_tickets_and_a_key(
    tmp_path: Path, store: str, security: str, reason: str
) -> None:
    text = f'{DIRECTORY}acting_as = "caller"\n{store}[security]\n{security}'
    with pytest.raises(ConfigError, match=reason):
        service_tickets(load(written(tmp_path, text)))


def test_one_keytab_is_enough_to_act_as_callers(tmp_path: Path) -> None:
    keytab = 'keytab = "mqis.keytab"\n'
    acting = 'acting_as = "caller"\n'
    assert service_tickets(load(written(tmp_path, DIRECTORY + keytab))) is None
    config = load(written(tmp_path, DIRECTORY + keytab + acting + "[security]\n" + keytab))
    assert service_tickets(config) is not None


def test_a_store_of_our_own_has_no_rights_of_callers(tmp_path: Path) -> None:
    config = load(written(tmp_path, 'url = "memory:"\nacting_as = "caller"\n'))

    async def run() -> None:
        with pytest.raises(ConfigError, match="in an Active Directory only"):
            await DirectoryServer(config).start()

    asyncio.run(in_time(run()))


@pytest.mark.parametrize(
    ("number", "words"),
    [(6, "no such account"), (18, "disabled, locked"), (23, "expired"), (24, "is wrong")],
)
def test_a_refusal_of_the_kdc_stands_in_words(number: int, words: str) -> None:
    class GssError(Exception):
        min_code = (number - 1765328384) & 0xFFFF_FFFF  # GSSAPI counts without a sign

    class Krb5Error(Exception):
        err_code = number - 1765328384

    wrapped = ValueError("the provider says something")
    wrapped.__cause__ = Krb5Error("?")
    for error in (GssError("?"), Krb5Error("?"), wrapped):
        assert words in kerberos.reason_of(error)
    assert kerberos.reason_of(ValueError("what it says")) == "what it says"
