"""Endpoints that know each other, and partners that do not play by the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mqis.protocol.authentication import AuthType
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_security import SecurityLevel
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.oletx.application_connection import OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.partner_binding import Security
from mqis.runtime.oletx.resolver import MapperResolver
from mqis.wire.guid import Guid
from mqis.wire.security.sid import Sid
from tests.waiting import DEADLINE_S

T = TypeVar("T")

#: Alpha is primary, Beta secondary.
ALPHA = NameObject("ALPHA", Guid.parse("b51996ef-c434-4f79-a288-56efd302fc8e"))
BETA = NameObject("BETA", Guid.parse("a3afb37b-f64a-4e6c-9017-f6a96ba6f166"))
TYPE = 0x101
#: With timers that no test waits for, however slow the machine is.
PATIENT = CmpoSettings(DEADLINE_S, DEADLINE_S, 2 * DEADLINE_S, retry_s=0.005, longest_retry_s=0.05)
#: Everything in a tenth of the usual time: for the tests of the timers.
QUICK = CmpoSettings(setup_s=0.6, teardown_s=1.0, call_s=1.2, retry_s=0.005, longest_retry_s=0.05)
DOMAIN = "CORP"
PASSWORD = "between machines"


@asynccontextmanager
async def couple(
    one: NameObject = ALPHA,
    other: NameObject = BETA,
    securities: tuple[Security | None, Security | None] = (None, None),
    **options: Any,
) -> AsyncIterator[tuple[OleTxEndpoint, OleTxEndpoint]]:
    """Two endpoints with an endpoint mapper each."""
    resolver = MapperResolver()
    defaults: dict[str, Any] = {"resolver": resolver, "mapper_port": 0, "settings": PATIENT}
    options = defaults | options
    a = OleTxEndpoint(one, security=securities[0], **options)
    b = OleTxEndpoint(other, security=securities[1], **options)
    async with a, b:
        for endpoint in (a, b):
            assert endpoint.mapper_port
            resolver.add(endpoint.name.host_name, "127.0.0.1", endpoint.mapper_port)
        yield a, b


async def echo(connection: OleTxConnection) -> None:
    """Every message back, its type one higher."""
    async for message in connection:
        await connection.send(message.type + 1, message.body)


def security(level: SecurityLevel, name: NameObject, password: str = PASSWORD) -> Security:
    """Machine accounts that both know; without a password no credentials."""
    accounts = [
        Account(DOMAIN, f"{host}$", Sid.parse(f"S-1-5-21-1-2-3-{number}"), nt_hash(PASSWORD))
        for number, host in enumerate(("ALPHA", "BETA"), 1000)
    ]
    authenticator = PyspnegoAuthenticator(MemoryAccounts(accounts), name.host_name, DOMAIN)
    who = LogonCredentials(f"{name.host_name}$", DOMAIN, password)
    initiator = PyspnegoInitiator(who) if password else None
    return Security(level, initiator, authenticator, AuthType.NTLM)
