"""From exceptions to HRESULTs: methods of dscomm and dscomm2 never raise (MQDS-3.1.4-04).

A method states what it does and raises whatever goes wrong. ``answered`` turns that into an answer
with a result. Only an RPC fault passes, which is how a context handle that is none is reported.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from mqis.protocol.errors import REPORTED, DirectoryError, StorageError
from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import Handler, Shortcut
from mqis.wire.hresult import HResult
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import PropVariant, VarType

log = logging.getLogger(__name__)

_NOTHING = PropVariant(VarType.NULL, None)

#: From a request and an HRESULT to the answer of an operation that has failed.
Refusal = Callable[[Any, int], Any]


def answered(method: Handler, refusal: Refusal) -> Handler:
    """The method, with an answer of ``refusal`` in the place of every exception.

    The method may be a plain function, a coroutine function, or a function that returns either an
    answer or an awaitable.
    """

    def handle(call: IncomingCall, request: Any) -> Any:
        try:
            answer = method(call, request)
        except RpcFault:
            raise
        except Exception as error:
            return refusal(request, result_of(error))
        return _awaited(answer, request, refusal) if hasattr(answer, "__await__") else answer

    return handle


def attempted(shortcut: Shortcut) -> Shortcut:
    """The shortcut, with no answer in the place of every exception: the handler answers then."""

    def attempt(call: IncomingCall, stub: bytes, syntax: Syntax) -> bytes | None:
        try:
            return shortcut(call, stub, syntax)
        except Exception:
            return None

    return attempt


async def _awaited(answer: Awaitable[Any], request: Any, refusal: Refusal) -> Any:
    try:
        return await answer
    except RpcFault:
        raise
    except Exception as error:
        return refusal(request, result_of(error))


def result_of(error: Exception) -> int:
    """The HRESULT that a caller gets instead of an exception."""
    if isinstance(error, DirectoryError):
        return error.hresult
    if isinstance(error, StorageError):
        if not isinstance(error, REPORTED):
            log.error("the store failed: %s", error)
        return HResult.MQ_ERROR_DS_ERROR
    log.error("a directory call failed", exc_info=error)
    return HResult.MQ_ERROR


# --- answers of failed calls that several operations have -----------------------------------------


def refused(_request: object, result: int) -> dscomm.DirectoryResult:
    """An operation that answers with its result alone."""
    return dscomm.DirectoryResult(result)


def no_handle(_request: object, result: int) -> dscomm.HandleGot:
    """An operation that opens a context handle."""
    return dscomm.HandleGot(ContextHandle.NULL, result)


def no_properties(request: dscomm.GetProps | dscomm.GetPropsGuid, result: int) -> dscomm.PropsGot:
    """An operation that reads properties: none has a value."""
    values = (_NOTHING,) * len(request.ids)
    return dscomm.PropsGot(values, bytes(request.signature_size), result)
