"""The sessions of a server for administrators: who is connected, and the end of a connection."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mqis.config.logs import details
from mqis.protocol.authentication import ANONYMOUS, AuthLevel, name_of
from mqis.protocol.documents import encode
from mqis.protocol.errors import DirectoryError
from mqis.protocol.sessions import (
    MOST_LISTED,
    MOST_NAME,
    SessionEntry,
    SessionsReply,
    SessionsRequest,
    SessionVerb,
    decode_request,
)
from mqis.runtime.directory.context import DirectoryContext
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.server_connection import RpcSession
from mqis.texts import shortened
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType

audit = logging.getLogger("mqis.audit")


class SessionList:
    """Answers requests about the connections to a server's RPC port."""

    def __init__(self, directory: DirectoryContext, rpc: Callable[[], RpcServer]) -> None:
        """``rpc`` is a function, as the server is made after its services."""
        self._directory = directory
        self._rpc = rpc

    async def reply(self, call: IncomingCall, request: bytes) -> bytes:
        guard = self._directory.guard(call)
        message = decode_request(request)
        ending = message.verb == SessionVerb.END
        what = f"end session {message.id} of" if ending else "see the sessions of"
        guard.check_administrator(what, ObjectType.ENTERPRISE, "this server")
        if ending:
            self._end(call, message)
        elif message.verb != SessionVerb.LIST:
            raise _refused(f"sessions: unknown verb {message.verb[:40]!r}")
        else:
            audit.info("sessions listed", extra=_asker(call, peer=call.peer))
        return encode(self._listed(call))

    def _listed(self, call: IncomingCall) -> SessionsReply:
        found = sorted(self._rpc().sessions(), key=lambda session: not session.names)
        entries = (_entry(session, call) for session in found[:MOST_LISTED])
        return SessionsReply(len(found), tuple(entries))

    def _end(self, call: IncomingCall, request: SessionsRequest) -> None:
        rpc = self._rpc()
        found = next((session for session in rpc.sessions() if session.id == request.id), None)
        reason = ""
        if found is None:
            reason = f"there is no session {request.id}; it may have ended meanwhile"
        elif found.group is call.group:
            reason = f"session {request.id} is the one that asks; just close it"
        if found is None or reason:
            audit.info(
                "session not ended",
                extra=_asker(call, peer=call.peer, session=request.id, reason=reason),
            )
            raise _refused(reason)
        rpc.end_session(request.id)
        about = {"account": _account(found), "address": found.address}
        audit.info("session ended", extra=_asker(call, peer=call.peer, session=request.id, **about))


def _asker(call: IncomingCall, **about: object) -> dict[str, object]:
    return details(user=name_of(call.identity), **about)


def _entry(session: RpcSession, call: IncomingCall) -> SessionEntry:
    return SessionEntry(
        session.id,
        session.address,
        _account(session),
        AuthLevel(session.level).name.lower(),
        int(session.since * 1e6),
        session.calls,
        session.handles,
        session.group is call.group,
    )


def _account(session: RpcSession) -> str:
    return shortened(", ".join(map(str, session.names)) or str(ANONYMOUS), MOST_NAME)


def _refused(reason: str) -> DirectoryError:
    return DirectoryError(HResult.MQ_ERROR_INVALID_PARAMETER, reason)
