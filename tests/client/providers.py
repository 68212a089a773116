"""Security providers for the handshake inside S_DSValidateServer, and a server that uses one."""

from __future__ import annotations

from typing import Any

from mqis.protocol.authentication import (
    NOWHERE,
    Addresses,
    AuthenticationError,
    AuthLevel,
    AuthType,
    SecurityContext,
)
from mqis.protocol.directory.serverauth import wrap
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import call_back
from mqis.testing.security import SharedSecret
from mqis.wire.mqds import dscomm
from tests.client.peers import AUTH, NOTHING, OK, Line, Scripted

SPNEGO, PRIVACY = AuthType.SPNEGO, AuthLevel.PRIVACY
SIZE = 65_536


class Bulky:
    """A shared secret whose tokens are stuffed to ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._secret = SharedSecret()
        self._size = size

    def initiator(self, auth_type: int, level: int, target: str) -> SecurityContext:
        return _Stuffed(self._secret.initiator(auth_type, level, target), self._size)

    def acceptor(
        self, auth_type: int, level: int, addresses: Addresses = NOWHERE
    ) -> SecurityContext:
        return _Stuffed(self._secret.acceptor(auth_type, level, addresses), self._size)


class _Stuffed:
    def __init__(self, context: Any, size: int) -> None:
        self._context = context
        self._size = size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def step(self, token: bytes | None) -> bytes | None:
        made: bytes | None = self._context.step(None if token is None else token.rstrip(b"\0"))
        return None if made is None else made.ljust(self._size, b"\0")


class Stubborn:
    """An initiator whose contexts do what they are told when they are stepped."""

    def __init__(self, *steps: bytes | Exception | None) -> None:
        self.steps = list(steps)
        self.complete = False

    def initiator(self, auth_type: int, level: int, target: str) -> Any:
        return self

    def step(self, _token: bytes | None) -> bytes | None:
        made = self.steps.pop(0)
        if isinstance(made, Exception):
            raise made
        return made


class Proving(Scripted):
    """A scripted server that proves itself and can sign."""

    def __init__(self, lines: dict[Any, Line] | None = None) -> None:
        self.secret = SharedSecret()
        self.context: Any = None
        super().__init__({dscomm.VALIDATE_SERVER: self._validate, **(lines or {})})

    async def __aenter__(self) -> Proving:
        await super().__aenter__()
        return self

    def sign(self, digest: bytes) -> bytes:
        return wrap(self.context, digest)

    async def _validate(
        self, call: IncomingCall, request: dscomm.ValidateServer
    ) -> dscomm.HandleGot:
        context = self.secret.acceptor(SPNEGO, PRIVACY)
        token: bytes = request.token
        try:
            while True:
                answer = context.step(token)
                if answer:
                    asked = dscomm.InitSecCtx(request.context, answer, SIZE)
                    given = {"buffer_size": SIZE}
                    got = await call_back(call, dscomm.INIT_SEC_CTX, asked, given=given)
                    if got.result not in (OK, 0x00090312):
                        return dscomm.HandleGot(NOTHING, got.result)
                    token = got.token
                if context.complete:
                    self.context = context
                    return dscomm.HandleGot(AUTH, OK)
        except AuthenticationError:
            return dscomm.HandleGot(NOTHING, 0xC00E0043)
