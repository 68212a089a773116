"""The administration interface: undelete and sessions, for administrators.

Its operations take and return documents. Whoever answers one checks the rights of the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mqis.protocol.documents import encode
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.sessions import SessionsReply
from mqis.protocol.undeletion.messages import UndeleteReply
from mqis.runtime.directory.results import result_of
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService
from mqis.server.session_service import SessionList
from mqis.wire.administration import (
    ADMINISTRATION,
    SESSIONS,
    UNDELETE,
    AdministrationAnswer,
    AdministrationCall,
)
from mqis.wire.hresult import HResult

#: Answers one request of an administrator.
Reply = Callable[[IncomingCall, bytes], Awaitable[bytes]]


class AdministrationService(TypedService):
    """The operations of one server."""

    def __init__(self, undelete: Reply, sessions: SessionList) -> None:
        super().__init__(
            ADMINISTRATION,
            {
                UNDELETE: _answering(undelete, UndeleteReply),
                SESSIONS: _answering(sessions.reply, SessionsReply),
            },
        )


def _answering(
    reply: Reply, kind: type[UndeleteReply | SessionsReply]
) -> Callable[[IncomingCall, AdministrationCall], Awaitable[AdministrationAnswer]]:
    """Answers one request; errors have a text as well as a result."""

    def failed(text: str, result: int) -> AdministrationAnswer:
        return AdministrationAnswer(encode(kind(error=text)), int(result))

    async def answer(call: IncomingCall, request: AdministrationCall) -> AdministrationAnswer:
        try:
            document = await reply(call, request.request)
        except DirectoryError as error:
            return failed(error.detail, error.hresult)
        except StorageError as error:
            return failed(str(error), HResult.MQ_ERROR_DS_ERROR)
        except Exception as error:
            return failed("the server failed; its log says more", result_of(error))
        return AdministrationAnswer(document, HResult.MQ_OK)

    return answer
