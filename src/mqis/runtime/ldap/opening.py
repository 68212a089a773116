"""Opening a connection to one server: TCP, TLS, logon; each failure with its reason."""

from __future__ import annotations

import asyncio
import ssl

from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapRefused
from mqis.protocol.ldap.urls import LdapUrl
from mqis.runtime.ldap.binding import bind
from mqis.runtime.ldap.connection import LdapConnection
from mqis.runtime.ldap.settings import LdapSettings
from mqis.runtime.ldap.tls import explain
from mqis.runtime.reasons import reason_of
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.requests import START_TLS, ExtendedRequest
from mqis.wire.ldap.responses import ExtendedResponse


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
            raise LdapConnectionLost(f"{url}: no connection within {limit:g} s") from None
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
