"""A server's clock, read from its NTLM challenge (MS-NLMP 2.2.2.1, MsvAvTimestamp).

This takes no logon: the client disconnects when it has the challenge.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from spnego._ntlm_raw.messages import AvId, Challenge, Negotiate, NegotiateFlags

from mqis.protocol.authentication import (
    AuthenticationError,
    AuthLevel,
    AuthType,
    Identity,
    SecurityContext,
)
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.security.tokens import check_size

_FLAGS = NegotiateFlags.unicode | NegotiateFlags.ntlm | NegotiateFlags.request_target


class _Asking:
    """An initiator, and its only context, which ends at the challenge."""

    signature_size = 0
    complete = False
    identity: Identity | None = None

    def __init__(self) -> None:
        self.difference_s: float | None = None

    def initiator(self, auth_type: int, level: int, target: str) -> SecurityContext:
        return self  # type: ignore[return-value]

    def step(self, token: bytes | None) -> bytes:
        if token is None:
            return Negotiate(flags=int(_FLAGS)).pack()
        with suppress(Exception):  # the challenge is not trusted
            check_size(token)
            target_info: dict[AvId, Any] = Challenge.unpack(token).target_info or {}
            self.difference_s = target_info[AvId.timestamp].timestamp() - time.time()
        raise AuthenticationError("the time is known")


async def clock_difference_s(
    host: str, port: int, interface: SyntaxId, timeout_s: float
) -> float | None:
    """Seconds by which a server's clock is ahead of ours; None if it sends no time."""
    asking = _Asking()
    credentials = Credentials(asking, AuthType.NTLM, AuthLevel.CONNECT, host)
    with suppress(AuthenticationError, RpcFault, RpcConnectionError, OSError, TimeoutError):
        client = await RpcClient.connect(
            host, port, [interface], credentials=credentials, timeout_s=timeout_s
        )
        await client.close()
    return asking.difference_s
