"""The calls of the administration interface, which servers of mqis offer (docs/operations.md)."""

from __future__ import annotations

from mqis.client.session import ServerSession
from mqis.protocol import sessions as session_documents
from mqis.protocol.documents import encode
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import FaultStatus, RpcConnectionError, RpcFault
from mqis.protocol.sessions import SessionsReply, SessionsRequest
from mqis.protocol.undeletion.messages import UndeleteReply, UndeleteRequest, decode_reply
from mqis.wire.administration import (
    ADMINISTRATION,
    SESSIONS,
    SYNTAX,
    UNDELETE,
    AdministrationAnswer,
    AdministrationCall,
)
from mqis.wire.hresult import is_failure
from mqis.wire.rpc.interfaces import Operation


async def undelete(session: ServerSession, request: UndeleteRequest) -> UndeleteReply:
    """Sends one request; raises ``DirectoryError`` with the server's reason if it refuses."""
    got = await _call(session, UNDELETE, encode(request), "undelete")
    reply = decode_reply(got.answer or b"{}")
    _check(got, reply.error, "undelete")
    return reply


async def sessions(session: ServerSession, request: SessionsRequest) -> SessionsReply:
    """Sends one request; raises ``DirectoryError`` with the server's reason if it refuses."""
    got = await _call(session, SESSIONS, encode(request), "sessions")
    reply = session_documents.decode_reply(got.answer or b"{}")
    _check(got, reply.error, "sessions")
    return reply


async def _call(
    session: ServerSession,
    operation: Operation[AdministrationCall, AdministrationAnswer],
    request: bytes,
    what: str,
) -> AdministrationAnswer:
    try:
        return await session.call(operation, AdministrationCall(request), interface=ADMINISTRATION)
    except (RpcConnectionError, RpcFault) as error:
        is_older = isinstance(error, RpcFault) and error.status == FaultStatus.OP_RNG_ERROR
        if not is_older and str(SYNTAX) not in str(error):
            raise
        raise ProtocolError(
            f"{session.server} does not offer {what}: it is no server of mqis, or an older one"
        ) from error


def _check(got: AdministrationAnswer, error: str, what: str) -> None:
    if is_failure(got.result):
        raise DirectoryError(got.result, error or f"{what} was refused")
