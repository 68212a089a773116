"""One connection to an LDAP server: carries bytes between a socket and ``LdapClient``."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from mqis.protocol.authentication import AuthenticationError
from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapViolation
from mqis.protocol.ldap.ldap_client import LdapClient, SecurityLayer
from mqis.runtime.peers import reason_of
from mqis.texts import duration
from mqis.wire.errors import WireError
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.messages import MAXIMUM_MESSAGE, LdapMessage
from mqis.wire.ldap.requests import LdapRequest
from mqis.wire.ldap.responses import SearchEntry, SearchReference


class LdapConnection(asyncio.Protocol):
    """Sends requests and waits for their answers. ``where`` names the server in errors."""

    def __init__(self, where: str, *, buffer_limit: int = MAXIMUM_MESSAGE) -> None:
        self.where = where
        self._client = LdapClient(buffer_limit=buffer_limit)
        self._transport: asyncio.Transport | None = None
        self._failure: LdapError | None = None
        self._waiting: dict[int, asyncio.Event] = {}
        self._paused = False

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        where: str,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        buffer_limit: int = MAXIMUM_MESSAGE,
    ) -> LdapConnection:
        """Connects; raises ``OSError`` and ``ssl.SSLError`` as asyncio does."""
        loop = asyncio.get_running_loop()
        name = (server_name or host) if tls else None
        _, connection = await loop.create_connection(
            lambda: cls(where, buffer_limit=buffer_limit), host, port, ssl=tls, server_hostname=name
        )
        return connection

    # --- for users of a connection ----------------------------------------------------------------

    @property
    def usable(self) -> bool:
        return self._failure is None and self._transport is not None

    @property
    def is_encrypted(self) -> bool:
        """True inside TLS; a SASL layer does not count."""
        return self._ssl_object is not None

    @property
    def peer_certificate(self) -> bytes | None:
        """The server's certificate (DER); None without TLS."""
        found = self._ssl_object
        return found.getpeercert(binary_form=True) if found is not None else None

    async def request(
        self, request: LdapRequest, controls: tuple[LdapControl, ...] = (), *, timeout_s: float
    ) -> LdapMessage:
        """Sends a request that has one answer, and returns that."""
        async with aclosing(self.stream(request, controls, timeout_s=timeout_s)) as answers:
            async for message in answers:
                return message
        raise AssertionError("a stream ends with an answer or an error")

    async def stream(
        self,
        request: LdapRequest,
        controls: tuple[LdapControl, ...] = (),
        *,
        timeout_s: float | None,
    ) -> AsyncGenerator[LdapMessage, None]:
        """Yields the answers up to the last; each may take ``timeout_s`` (None: for ever)."""
        async with aclosing(self.answers(self.send(request, controls), timeout_s)) as answers:
            async for message in answers:
                yield message

    def send(self, request: LdapRequest, controls: tuple[LdapControl, ...]) -> int:
        """Sends a request and returns its number, with which its answers are taken or given up."""
        if not self.usable:
            raise self._lost()
        number = self._client.send(request, controls)
        self._waiting[number] = asyncio.Event()
        self._flush()
        self._adjust_reading()  # somebody waits now
        return number

    async def last_answer(self, number: int, timeout_s: float) -> LdapMessage | None:
        """Waits until all answers to a request have arrived and returns the last; takes none.

        None if they do not fit into the memory for answers: take them as they come.
        """
        arrived = self._client.arrived(number)
        while not (arrived[1] or self._client.is_full):
            async with self._answering(number, timeout_s) as event:  # for each answer anew
                while (now := self._client.arrived(number)) == arrived:
                    await self._woken(event)
            arrived = now
        return self._client.last(number)

    async def answers(
        self, number: int, timeout_s: float | None
    ) -> AsyncGenerator[LdapMessage, None]:
        """Yields the answers to a request up to the last."""
        try:
            while True:
                message = await self._next(number, timeout_s)
                last = not isinstance(message.operation, SearchEntry | SearchReference)
                if last:
                    self._waiting.pop(number, None)
                yield message
                if last:
                    return
        finally:
            self.give_up(number)

    def give_up(self, number: int) -> None:
        """Forgets a request whose answers nobody wants any more."""
        self._waiting.pop(number, None)
        self._client.give_up(number)
        self._flush()
        self._adjust_reading()

    async def start_tls(self, context: ssl.SSLContext, server_name: str) -> None:
        """Begins TLS after the server has agreed to StartTLS."""
        self._client.expect_silence()
        transport, self._transport = self._transport, None
        if transport is None:
            raise self._lost()
        found = await asyncio.get_running_loop().start_tls(
            transport, self, context, server_hostname=server_name
        )
        if found is None:
            raise LdapConnectionLost(f"{self.where}: the connection ended during StartTLS")
        self._transport = found

    def protect(self, layer: SecurityLayer) -> None:
        self._client.protect(layer)

    async def close(self) -> None:
        if self._transport is None:
            return
        if self.usable:
            self._client.unbind()
            self._flush()
        self._fail(LdapConnectionLost(f"{self.where}: the connection was closed"))
        self._transport.close()
        self._transport = None

    def abort(self) -> None:
        """Ends the connection without a word to the server."""
        self._fail(LdapConnectionLost(f"{self.where}: the connection was given up"))

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        try:
            self._client.receive(data)
        except LdapError as error:
            self._fail(type(error)(f"{self.where}: {error}"))
        except (WireError, AuthenticationError) as error:
            self._fail(LdapViolation(f"{self.where}: the answer is damaged: {error}"))
        self._flush()
        self._adjust_reading()
        self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        reason = "the server closed the connection"
        if isinstance(error, OSError):
            reason = f"the connection is lost: {reason_of(error)}"
        self._fail(LdapConnectionLost(f"{self.where}: {reason}"))

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _ssl_object(self) -> ssl.SSLObject | None:
        found: ssl.SSLObject | None = None
        if self._transport is not None:
            found = self._transport.get_extra_info("ssl_object")
        return found

    async def _next(self, number: int, timeout_s: float | None) -> LdapMessage:
        if (ready := self._client.take(number)) is not None:
            self._adjust_reading()
            return ready
        async with self._answering(number, timeout_s) as event:
            while (message := self._client.take(number)) is None:
                await self._woken(event)
        return message

    @asynccontextmanager
    async def _answering(
        self, number: int, timeout_s: float | None
    ) -> AsyncIterator[asyncio.Event]:
        """The event that is set when answers arrive, or the end of the connection."""
        try:
            async with asyncio.timeout(timeout_s):
                yield self._waiting[number]
        except TimeoutError:
            waited = duration(timeout_s or 0.0)
            raise LdapConnectionLost(f"{self.where}: no answer within {waited}") from None
        finally:
            self._adjust_reading()

    async def _woken(self, event: asyncio.Event) -> None:
        if not self.usable:
            raise self._lost()
        event.clear()
        await event.wait()

    def _lost(self) -> LdapError:
        if self._failure is None:
            return LdapConnectionLost(f"{self.where}: there is no connection")
        # A new one each time: an error that is raised twice would gather tracebacks.
        return type(self._failure)(str(self._failure))

    def _flush(self) -> None:
        data = self._client.data_to_send()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _adjust_reading(self) -> None:
        """Stops reading while too many answers wait, and goes on as soon as they are taken."""
        pause = not self._client.wants_data
        if pause == self._paused or self._transport is None or self._transport.is_closing():
            return
        self._paused = pause
        if pause:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _fail(self, error: LdapError) -> None:
        if self._failure is None:
            self._failure = error
            if self._transport is not None:
                self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        for event in self._waiting.values():
            event.set()
