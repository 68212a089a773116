"""Several domain controllers: the next one takes over if one cannot be reached.

The servers are given, or found by DNS: a URL without a host names a domain, whose controllers are
the SRV records ``_ldap._tcp.dc._msdcs.DOMAIN`` (MS-ADTS 6.3.6.1).

DNS can be forged. So a controller that DNS names has to be in the domain that was asked for, and
its certificate is one for a name in that domain.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.ldap_connection import LdapConnection
from mqis.runtime.ldap.ldap_logon import bind
from mqis.runtime.ldap.settings import LdapSettings, explain
from mqis.runtime.peers import reason_of
from mqis.texts import duration
from mqis.wire.errors import MqisError
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.requests import START_TLS, ExtendedRequest
from mqis.wire.ldap.responses import ExtendedResponse


@dataclass(frozen=True, slots=True)
class LocatedServer:
    """An SRV record: lower priorities are tried first."""

    priority: int
    weight: int
    host: str
    port: int


#: Finds the SRV records of a name.
Locator = Callable[[str], Awaitable[list[LocatedServer]]]


async def locate_by_dns(name: str) -> list[LocatedServer]:
    """Asks the resolvers of this computer for SRV records."""
    try:
        from dns import asyncresolver, exception  # noqa: PLC0415  an extra
    except ImportError:
        raise LdapConnectionLost(
            f"finding servers under {name} needs the extra mqis[dns]; or name a server in the URL"
        ) from None
    try:
        answer = await asyncresolver.resolve(name, "SRV", lifetime=10.0)
    except exception.DNSException as error:
        raise LdapConnectionLost(f"DNS has no servers under {name}: {error}") from error
    return [
        LocatedServer(row.priority, row.weight, str(row.target).rstrip("."), row.port)
        for row in answer
    ]


class DomainControllers:
    """Opens connections, beginning with the server that worked last."""

    def __init__(self, settings: LdapSettings, locate: Locator = locate_by_dns) -> None:
        if not settings.servers:
            raise MqisError("no directory server is given")
        self.settings = settings
        self._locate = locate
        self._last: LdapUrl | None = None

    async def connect(self) -> LdapConnection:
        """Returns a connection to the first server that answers.

        A server that refuses the logon ends the search: the next one would refuse as well, and
        each wrong password counts towards the lockout of the account.
        """
        failures: list[str] = []
        for url in await self._candidates():
            try:
                connection = await open_connection(url, self.settings)
            except LdapConnectionLost as error:
                failures.append(str(error))
                continue
            self._last = url
            return connection
        raise LdapConnectionLost("; ".join(failures) or "no directory server was found")

    async def _candidates(self) -> list[LdapUrl]:
        found: list[LdapUrl] = []
        for url in self.settings.servers:
            found.extend([url] if url.host else await self._located(url))
        if self._last in found:
            found.remove(self._last)
            found.insert(0, self._last)
        return found

    async def _located(self, url: LdapUrl) -> list[LdapUrl]:
        if not url.domain:
            raise MqisError(
                f"{url}: it names neither a server nor a domain; write ldaps://dc1.corp.example or "
                "ldaps:///DC=corp,DC=example"
            )
        name = f"_ldap._tcp.{'gc' if url.is_global_catalogue else 'dc'}._msdcs.{url.domain}"
        found = await self._locate(name)
        rows = [row for row in found if _is_inside(row.host, url.domain)]
        if not rows and found:
            others = ", ".join(sorted(row.host for row in found))[:200]
            raise LdapConnectionLost(
                f"DNS names servers outside {url.domain} as its domain controllers: {others}; if "
                "that is right, name one of them in the URL"
            )
        # DNS knows the port without TLS only, so the one of the URL is used.
        rows.sort(key=lambda row: (row.priority, -row.weight, row.host))
        return [replace(url, host=row.host) for row in rows]


def _is_inside(host: str, domain: str) -> bool:
    """True for a name in the domain, or the domain itself."""
    return f".{host.lower()}".endswith(f".{domain.lower()}")


# --- Opening a connection to one server: TCP, TLS, logon; each failure with its reason ------------


async def open_connection(url: LdapUrl, settings: LdapSettings) -> LdapConnection:
    """Connects and logs on, within the time that the settings allow."""
    connection: LdapConnection | None = None
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            connection = await _connect(url, settings)
            name = settings.tls.server_name or url.host
            if settings.start_tls and not url.tls:
                await _start_tls(connection, name, settings)
            await bind(connection, settings.login, name, timeout_s=settings.connect_timeout_s)
    except BaseException as error:
        if connection is not None:
            connection.abort()
        if isinstance(error, TimeoutError):
            limit = settings.connect_timeout_s
            raise LdapConnectionLost(f"{url}: no connection within {duration(limit)}") from None
        raise
    return connection


async def _connect(url: LdapUrl, settings: LdapSettings) -> LdapConnection:
    name = settings.tls.server_name or url.host
    try:
        return await LdapConnection.open(
            url.host,
            url.port,
            where=str(url),
            tls=settings.tls.context() if url.tls else None,
            server_name=name,
            buffer_limit=settings.buffer_limit,
        )
    except ssl.SSLError as error:
        raise explain(error, str(url), name) from error
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        if url.tls and isinstance(error, ConnectionResetError | ConnectionAbortedError):
            raise LdapError(f"{url}: the server ends the connection when TLS begins") from error
        raise LdapConnectionLost(f"{url}: no connection: {reason_of(error)}") from error


async def _start_tls(connection: LdapConnection, name: str, settings: LdapSettings) -> None:
    timeout_s = settings.connect_timeout_s
    message = await connection.request(ExtendedRequest(START_TLS), timeout_s=timeout_s)
    answer = message.operation
    if isinstance(answer, ExtendedResponse) and answer.result.code != ResultCode.SUCCESS:
        raise LdapRefused(f"{connection.where}: StartTLS", answer.result)
    try:
        await connection.start_tls(settings.tls.context(), name)
    except ssl.SSLError as error:
        raise explain(error, connection.where, name) from error
    except (ConnectionError, LdapConnectionLost) as error:
        raise LdapError(
            f"{connection.where}: the server ends the connection in StartTLS"
        ) from error
