"""The call of the administration interface, which servers of mqis offer (docs/operations.md)."""

from __future__ import annotations

from mqis.client.session import ServerSession
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.protocol.undeletion.messages import (
    UndeleteReply,
    UndeleteRequest,
    decode_reply,
    encode,
)
from mqis.wire.administration import ADMINISTRATION, SYNTAX, UNDELETE, UndeleteCall
from mqis.wire.hresult import is_failure


async def undelete(session: ServerSession, request: UndeleteRequest) -> UndeleteReply:
    """Sends one request; raises ``DirectoryError`` with the server's reason if it refuses."""
    try:
        got = await session.call(UNDELETE, UndeleteCall(encode(request)), interface=ADMINISTRATION)
    except RpcConnectionError as error:
        if str(SYNTAX) not in str(error):
            raise
        raise ProtocolError(
            f"{session.server} does not offer undelete: it is no server of mqis, or an older one"
        ) from error
    reply = decode_reply(got.answer or b"{}")
    if is_failure(got.result):
        raise DirectoryError(got.result, reply.error or "undelete was refused")
    return reply
