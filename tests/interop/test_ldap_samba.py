"""The LDAP client against a real Active Directory: a Samba domain controller on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect
from mqis.protocol.ldap.errors import LdapError
from mqis.protocol.ldap.ports import LdapQuery
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.authentication import kerberos
from mqis.runtime.ldap.domain_controllers import DomainControllers
from mqis.runtime.ldap.failover import LdapDirectoryClient
from mqis.runtime.ldap.ldap_logon import BindMethod, LdapLogin
from mqis.runtime.ldap.settings import LdapSettings, TlsSettings
from mqis.runtime.ldap.spnego import LdapProtection
from mqis.wire.errors import MqisError
from mqis.wire.ldap.filters import parse_filter
from tests.interop.samba_domain import PASSWORD, USER, samba_domain

pytestmark = pytest.mark.interop

DOMAIN = "DC=corp,DC=example"
SERVICES = f"CN=Services,CN=Configuration,{DOMAIN}"
LDAP, LDAPS = "ldap://127.0.0.1", "ldaps://127.0.0.1"
NAMES = LdapQuery(DOMAIN, attributes=("cn",), page_size=50)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one") as directory:
        yield directory


def client(
    domain: Path, url: str = LDAPS, *, start_tls: bool = False, **login: Any
) -> LdapDirectoryClient:
    given = {"user": USER, "password": PASSWORD, **login}
    tls = TlsSettings(domain / "private/tls/own.pem", "dc1.corp.example")
    settings = LdapSettings((LdapUrl.parse(url),), LdapLogin(**given), tls, start_tls=start_tls)
    return LdapDirectoryClient(DomainControllers(settings))


def ldapsearch(domain: Path, base: str, *arguments: str) -> list[str]:
    """The lines that ldap-utils print for a search."""
    command = "ldapsearch -x -LLL -o ldif-wrap=no -H"
    done = subprocess.run(
        [*command.split(), LDAPS, "-D", USER, "-w", PASSWORD, "-b", base, *arguments],
        env=os.environ | {"LDAPTLS_CACERT": str(domain / "private/tls/own.pem")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


async def count(directory: LdapDirectoryClient, query: LdapQuery = NAMES) -> int:
    try:
        return len([entry async for entry in directory.search(query)])
    finally:
        await directory.close()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (LDAPS, {}),
        (LDAPS, {"user": "CORP\\Administrator"}),
        (LDAP, {}),
        (LDAP, {"start_tls": True}),
        (LDAPS, {"method": BindMethod.SIMPLE}),
        (LDAPS, {"method": BindMethod.SIMPLE, "user": "CORP\\Administrator"}),
        (LDAPS, {"method": BindMethod.SIMPLE, "user": f"CN=Administrator,CN=Users,{DOMAIN}"}),
        (LDAP, {"method": BindMethod.SIMPLE, "start_tls": True}),
        (LDAP, {"method": BindMethod.NTLM}),
        (LDAP, {"method": BindMethod.NTLM, "user": "CORP\\Administrator"}),
        (LDAP, {"method": BindMethod.NTLM, "protection": LdapProtection.SIGN}),
        (LDAPS, {"method": BindMethod.NTLM}),
        (LDAP, {"method": BindMethod.NEGOTIATE}),
        (LDAP, {"method": BindMethod.KERBEROS}),
        (LDAP, {"method": BindMethod.KERBEROS, "protection": LdapProtection.SIGN}),
        (LDAPS, {"method": BindMethod.KERBEROS}),
    ],
)
def test_logons(
    domain: Path, monkeypatch: pytest.MonkeyPatch, url: str, options: dict[str, Any]
) -> None:
    if options.get("method") is BindMethod.KERBEROS and not kerberos.available():
        pytest.skip("Kerberos is not installed (pip install 'mqis[kerberos]')")
    monkeypatch.setenv("KRB5_CONFIG", str(domain / "krb5.conf"))
    expected = sum(line.startswith("dn:") for line in ldapsearch(domain, DOMAIN, "cn"))
    assert asyncio.run(count(client(domain, url, **options))) == expected > 100


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        (LDAP, {"method": BindMethod.NTLM, "protection": LdapProtection.NONE}, "strongerAuth"),
        (LDAPS, {"password": "wrong"}, "invalidCredentials"),
        (LDAPS, {"method": BindMethod.SIMPLE, "password": "wrong"}, "data 52e"),
        (LDAP, {"method": BindMethod.NTLM, "password": "wrong"}, "invalidCredentials"),
    ],
)
def test_refused_logons(domain: Path, url: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(LdapError, match=reason):
        asyncio.run(count(client(domain, url, **options)))


def test_connecting_by_url(domain: Path, tmp_path: Path) -> None:
    options = ConnectingOptions(
        (LDAPS,), USER, ca_file=domain / "private/tls/own.pem", server_name="dc1.corp.example"
    )

    async def test(password: str, options: ConnectingOptions) -> str:
        directory, root = await connect(options, {"MQIS_LDAP_PASSWORD": password})
        await directory.close()
        return f"{root.domain} {root.host}"

    assert asyncio.run(test(PASSWORD, options)) == f"{DOMAIN} dc1.corp.example"
    with pytest.raises(MqisError, match="the user name or the password is wrong"):
        asyncio.run(test("wrong", options))
    with pytest.raises(MqisError, match="is not trusted"):
        asyncio.run(test(PASSWORD, replace(options, ca_file=None)))
    with pytest.raises(MqisError, match="is not for dc2"):
        asyncio.run(test(PASSWORD, replace(options, server_name="dc2.corp.example")))


@pytest.mark.parametrize("url", ["ldap://127.0.0.1:3268", "ldaps://127.0.0.1:3269"])
def test_the_global_catalogue_has_all_contexts(domain: Path, url: str) -> None:
    query = LdapQuery("", filter=parse_filter("(cn=MsmqServices)"), attributes=("cn",))
    assert asyncio.run(count(client(domain, url), query)) == 1
