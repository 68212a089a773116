"""TLS, StartTLS and logons on real sockets, with the reasons that people read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions, connect
from mqis.runtime.ldap.ldap_logon import BindMethod
from mqis.testing.ldap import LdapFault, ScriptedDirectory, entry
from mqis.wire.errors import MqisError
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import ExtendedRequest, SimpleBind
from mqis.wire.ldap.responses import BindResponse, ExtendedResponse, LdapResult
from tests.runtime.ldap.certificates import server_context

ROOT = entry(
    "",
    defaultNamingContext=b"DC=x",
    configurationNamingContext=b"CN=Configuration,DC=x",
    highestCommittedUSN=b"12345678901",
)
USER = {"user": "a@x", "password_file": "pw"}
SIMPLE = {**USER, "method": BindMethod.SIMPLE}


async def attempt(server: ScriptedDirectory, path: Path, **options: Any) -> str:
    """Connects, reads the root, and returns the domain."""
    (path / "pw").write_text("secret\n")
    (path / "pw").chmod(0o600)
    if "password_file" in options:
        options["password_file"] = path / options["password_file"]
    if "ca_file" in options:
        options["ca_file"] = path / options["ca_file"]
    client, root = await connect(ConnectingOptions((server.url,), **options), {})
    await client.close()
    return root.domain


def refused(path: Path, reason: str, server: ScriptedDirectory, **options: Any) -> None:
    async def test() -> None:
        async with server:
            with pytest.raises(MqisError, match=reason):
                await attempt(server, path, **options)

    asyncio.run(test())


def works(path: Path, server: ScriptedDirectory, **options: Any) -> None:
    async def test() -> None:
        async with server:
            assert await attempt(server, path, **options) == "DC=x"

    asyncio.run(test())


def directory(tls: Any = None, **options: Any) -> ScriptedDirectory:
    return ScriptedDirectory([ROOT], users={"a@x": b"secret"}, tls=tls, **options)


def test_a_simple_bind_inside_tls(tmp_path: Path) -> None:
    server = directory(server_context(tmp_path), ldaps=True)
    works(tmp_path, server, ca_file="ca.pem", **SIMPLE)
    assert server.operations(SimpleBind) == [SimpleBind("a@x", b"secret")]


def test_start_tls_comes_before_the_password(tmp_path: Path) -> None:
    server = directory(server_context(tmp_path))
    works(tmp_path, server, ca_file="ca.pem", start_tls=True, **SIMPLE)
    kinds = [type(message.operation) for message in server.received[:2]]
    assert kinds == [ExtendedRequest, SimpleBind]


def test_another_name_of_the_server(tmp_path: Path) -> None:
    server = directory(server_context(tmp_path, host=""), ldaps=True)
    works(tmp_path, server, ca_file="ca.pem", server_name="dc1.corp.example", **SIMPLE)


def test_no_logon_without_a_user(tmp_path: Path) -> None:
    server = directory()
    works(tmp_path, server)
    assert server.operations(SimpleBind) == []


def test_a_wrong_name(tmp_path: Path) -> None:
    server = directory(server_context(tmp_path, host=""), ldaps=True)
    refused(tmp_path, "is not for 127.0.0.1; connect by a name", server, ca_file="ca.pem", **SIMPLE)
    assert server.received == []


def test_an_unknown_authority(tmp_path: Path) -> None:
    server = directory(server_context(tmp_path), ldaps=True)
    refused(tmp_path, r"is not trusted \(.*\); give the certificate", server, **SIMPLE)
    assert server.received == []


@pytest.mark.parametrize("start_tls", [True, False])
def test_an_expired_certificate(tmp_path: Path, start_tls: bool) -> None:
    tls = server_context(tmp_path, expired=True)
    server = directory(tls, ldaps=not start_tls)
    reason = "the certificate of the server has expired; renew it"
    refused(tmp_path, reason, server, ca_file="ca.pem", start_tls=start_tls, **SIMPLE)
    assert server.operations(SimpleBind) == []


def test_a_file_without_certificates(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    server = ScriptedDirectory(tls=None)

    async def test() -> None:
        async with server:
            url = server.url.replace("ldap:", "ldaps:")
            options = ConnectingOptions((url,), ca_file=tmp_path / "ca.pem")
            with pytest.raises(MqisError, match="no certificates can be read from it"):
                await connect(options, {})

    asyncio.run(test())


def test_a_server_without_tls_on_the_port(tmp_path: Path) -> None:
    server = directory()
    server.on_message = lambda message: [LdapFault.GARBAGE]

    async def test() -> None:
        async with server:
            url = server.url.replace("ldap:", "ldaps:")
            with pytest.raises(MqisError, match="TLS"):
                await connect(ConnectingOptions((url,)), {})

    asyncio.run(test())


def test_start_tls_that_the_server_does_not_know(tmp_path: Path) -> None:
    reason = r"StartTLS: the directory refuses: protocolError \(2\)"
    refused(tmp_path, reason, directory(), start_tls=True, **SIMPLE)


def test_answers_slipped_in_before_tls_are_refused(tmp_path: Path) -> None:
    """Whoever can write into the clear part of a connection must not answer the bind."""
    server = directory(server_context(tmp_path))

    def inject(message: LdapMessage) -> Any:
        if isinstance(message.operation, ExtendedRequest):
            forged = LdapMessage(2, BindResponse(LdapResult())).encode()
            answer = LdapMessage(message.id, ExtendedResponse(LdapResult())).encode()
            return [answer + forged]
        return None

    server.on_message = inject
    refused(tmp_path, "bytes follow the answer", server, ca_file="ca.pem", start_tls=True, **SIMPLE)
    assert server.operations(SimpleBind) == []


@pytest.mark.req("MQDSSM-3.1.6.18-04")
def test_a_simple_bind_in_the_clear_is_refused_here(tmp_path: Path) -> None:
    server = directory()
    reason = "a simple bind without TLS would show the password"
    refused(tmp_path, reason, server, **SIMPLE)
    assert server.received == []


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (LdapResult(49, "", "AcceptSecurityContext error, data 52e, v1db1"), "password is wrong"),
        (LdapResult(49, "", "AcceptSecurityContext error, data 775, v1db1"), "account is locked"),
        (LdapResult(49), r"the logon is refused \(invalidCredentials \(49\)\)"),
        (LdapResult(8), r"strongerAuthRequired \(8\)$"),
        (LdapResult(53, "", "no"), r"unwillingToPerform \(53\): no"),
    ],
)
def test_reasons_of_a_refused_logon(tmp_path: Path, result: LdapResult, reason: str) -> None:
    server = directory(server_context(tmp_path), ldaps=True)
    server.on_message = lambda message: (
        [BindResponse(result)] if isinstance(message.operation, SimpleBind) else None
    )
    refused(tmp_path, reason, server, ca_file="ca.pem", **SIMPLE)


def test_an_empty_password_is_not_sent(tmp_path: Path) -> None:
    """RFC 4513 5.1.2: a server answers success to a name without a password."""
    server = directory(server_context(tmp_path), ldaps=True)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "empty").chmod(0o600)
    settings: dict[str, Any] = {"ca_file": "ca.pem", **SIMPLE, "password_file": "empty"}
    refused(tmp_path, "the first line must be the password, but is empty", server, **settings)

    async def from_the_environment() -> None:
        async with server:
            options = ConnectingOptions(
                (server.url,), "a@x", ca_file=tmp_path / "ca.pem", method=BindMethod.SIMPLE
            )
            with pytest.raises(MqisError, match="the password is empty"):
                await connect(options, {"MQIS_LDAP_PASSWORD": ""})

    asyncio.run(from_the_environment())
    assert server.received == []


def test_a_server_that_is_no_active_directory(tmp_path: Path) -> None:
    refused(tmp_path, "not an Active Directory", ScriptedDirectory([entry("", cn=b"x")]))
    refused(tmp_path, "the server shows no root entry", ScriptedDirectory())


def test_a_port_of_something_else(tmp_path: Path) -> None:
    server = directory()
    server.on_message = lambda message: [LdapFault.GARBAGE]
    refused(tmp_path, "is this the port of a directory server", server)


def test_passwords_come_from_files_and_the_environment(tmp_path: Path) -> None:
    async def login(environment: dict[str, str], **options: Any) -> str:
        async with directory(server_context(tmp_path), ldaps=True) as server:
            given = ConnectingOptions(
                *((server.url,), "a@x"),
                ca_file=tmp_path / "ca.pem", method=BindMethod.SIMPLE, **options,
            )  # fmt: skip
            client, root = await connect(given, environment)
            await client.close()
            return root.domain

    (tmp_path / "pw").write_text("secret\r\nmore")
    (tmp_path / "pw").chmod(0o600)
    path = str(tmp_path / "pw")
    assert asyncio.run(login({"MQIS_LDAP_PASSWORD": "secret"})) == "DC=x"
    assert asyncio.run(login({"MQIS_LDAP_PASSWORD_FILE": path})) == "DC=x"
    with pytest.raises(MqisError, match="no password for a@x: put it into a file"):
        asyncio.run(login({}))
    with pytest.raises(MqisError, match="none: the password cannot be read: No such file"):
        asyncio.run(login({}, password_file=tmp_path / "none"))


def test_addresses_that_are_wrong() -> None:
    with pytest.raises(MqisError, match="'dc1' is not an LDAP URL"):
        asyncio.run(connect(ConnectingOptions(("dc1",)), {}))
