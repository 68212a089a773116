"""One wrapper makes answers of exceptions, for both interfaces of the directory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.directory.results import answered
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.hresult import HResult

CALL = cast(IncomingCall, None)
DENIED = DirectoryError(HResult.MQ_ERROR_ACCESS_DENIED, "no")
CASES: list[tuple[Exception, int]] = [
    (DENIED, HResult.MQ_ERROR_ACCESS_DENIED),
    (StorageError("the disk is full"), HResult.MQ_ERROR_DS_ERROR),
    (KeyError("a mistake of ours"), HResult.MQ_ERROR),
]


def refusal(request: object, result: int) -> tuple[object, int]:
    return request, int(result)


def at_once(_call: IncomingCall, request: object) -> object:
    if isinstance(request, Exception):
        raise request
    return "done"


async def in_time(call: IncomingCall, request: object) -> object:
    await asyncio.sleep(0)
    return at_once(call, request)


def either(call: IncomingCall, request: object) -> object:
    return in_time(call, request)


async def outcome(method: Any, request: object) -> object:
    answer = answered(method, refusal)(CALL, request)
    return await answer if isinstance(answer, Awaitable) else answer


@pytest.mark.req("MQDS-3.1.4-04")
@pytest.mark.parametrize("method", [at_once, in_time, either])
@pytest.mark.parametrize(("error", "result"), CASES, ids=lambda case: type(case).__name__)
def test_every_exception_is_answered(method: Any, error: Exception, result: int) -> None:
    assert asyncio.run(outcome(method, error)) == (error, int(result))


@pytest.mark.parametrize("method", [at_once, in_time, either])
def test_answers_pass(method: Any) -> None:
    assert asyncio.run(outcome(method, "request")) == "done"


@pytest.mark.parametrize("method", [at_once, in_time, either])
def test_a_fault_stays_a_fault(method: Any) -> None:
    """A context handle that is none is no matter of the directory."""
    with pytest.raises(RpcFault):
        asyncio.run(outcome(method, RpcFault(FaultStatus.CONTEXT_MISMATCH, "not a handle")))


def test_a_call_that_is_cancelled_has_no_answer() -> None:
    async def cancelled(_call: IncomingCall, _request: object) -> object:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(outcome(cancelled, "request"))


def test_mistakes_are_logged_and_refusals_are_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        asyncio.run(outcome(at_once, DENIED))
        assert not caplog.records
        asyncio.run(outcome(at_once, KeyError("a mistake of ours")))
    assert [record.getMessage() for record in caplog.records] == ["a directory call failed"]
