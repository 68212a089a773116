"""The short way of a call passes by nothing: rights, audit, budgets, counters, answers.

The same calls go to equal servers: alone, all in one segment, and with the short way closed, so
that every PDU is decoded and reassembled. What the servers answer, count, charge and log has to be
the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.budget import Quota
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import (
    AgreedContext,
    Bound,
    CallReturned,
    ClientConnection,
    Faulted,
)
from mqis.protocol.rpc.server_requests import Requests
from mqis.runtime.directory import walks
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import VarType
from mqis.wire.rpc.interfaces import NDR20, Operation
from tests.protocol.directory.world import MACHINE, ORDERS, QUEUE
from tests.runtime.directory.serving import ALICE, HOST, Served, initiator, scenario, serving
from tests.runtime.directory.test_access import guarded
from tests.runtime.rpc.desk import Raw

NULL = VarType.NULL
DELETE = 0x1_0000
LEVELS = pytest.mark.parametrize("level", [AuthLevel.NONE, AuthLevel.INTEGRITY, AuthLevel.PRIVACY])
#: One more than a connection may have open.
LOOKUPS = 4

Q = TypeVar("Q")
Request = tuple[int, bytes]


class Wire:
    """A client that sends prepared requests in the way that a test chooses."""

    def __init__(self, raw: Raw, level: int) -> None:
        self._raw, self._machine = raw, ClientConnection()
        self._context: AgreedContext | None = None
        self._channel: Channel | None = None
        if level > AuthLevel.NONE:
            context = initiator(ALICE).initiator(AuthType.NTLM, level, HOST)
            self._channel = Channel(1, AuthType.NTLM, level, context)

    async def bind(self) -> None:
        self._machine.bind([dscomm.SYNTAX], transfers=[NDR20], channel=self._channel)
        while self._context is None:
            await self._raw.send(self._machine.data_to_send())
            for event in self._machine.receive(await self._raw.pdu()):
                if isinstance(event, Bound):
                    self._context = event.contexts[0]
        await self._raw.send(self._machine.data_to_send())

    async def alone(self, requests: list[Request]) -> list[bytes | int]:
        """Sends each request when the one before is answered."""
        return [answer for one in requests for answer in await self.together([one])]

    async def together(self, requests: list[Request]) -> list[bytes | int]:
        """Sends all requests at once; returns the stubs of the answers, or the faults' statuses."""
        assert self._context is not None
        segment = b""
        for opnum, stub in requests:
            self._machine.request(self._context, opnum, stub)
            segment += self._machine.data_to_send()
        await self._raw.send(segment)
        answers: dict[int, bytes | int] = {}
        while len(answers) < len(requests):  # those that wait for a commit come last
            for event in self._machine.receive(await self._raw.pdu()):
                assert isinstance(event, (CallReturned, Faulted))
                answer = event.stub if isinstance(event, CallReturned) else event.status
                answers[event.call_id] = answer
        return [answers[call_id] for call_id in sorted(answers)]


def call(operation: Operation[Q, Any], request: Q) -> Request:
    return operation.opnum, operation.request.encode(request, Syntax.NDR20)


def script(auth: ContextHandle) -> Iterator[Request]:
    """Calls that are done, denied, refused by a budget, and faulty ones."""
    ids, types = (103, 108), (NULL, NULL)
    yield call(dscomm.GET_PROPS, dscomm.GetProps(QUEUE, "C14\\orders", ids, types, auth, 9))
    yield call(dscomm.GET_PROPS_GUID, dscomm.GetPropsGuid(QUEUE, ORDERS, ids, types, auth, 9))
    yield call(dscomm.GET_PROPS, dscomm.GetProps(MACHINE, "C14", (203,), (NULL,), auth, 9))
    yield call(dscomm.GET_PROPS, dscomm.GetProps(QUEUE, "C14\\none", ids, types, auth, 9))
    yield call(dscomm.DELETE_OBJECT, dscomm.ByPath(QUEUE, "C14\\orders"))
    yield call(dscomm.DELETE_OBJECT_GUID, dscomm.ByGuid(QUEUE, ORDERS))
    for _ in range(LOOKUPS):
        lookup = dscomm.LookupBegin(None, None, ColumnSet((101, 103)), None, auth)
        yield call(dscomm.LOOKUP_BEGIN, lookup)
    unknown = ContextHandle(Guid(b"not any handle.."))
    yield call(dscomm.LOOKUP_END, dscomm.HandleGiven(unknown))
    yield call(dscomm.GET_PROPS, dscomm.GetProps(QUEUE, "C14\\orders", ids, types, unknown, 9))
    yield dscomm.GET_PROPS.opnum, b"no stub"
    yield 99, b""
    yield call(dscomm.GET_PROPS, dscomm.GetProps(QUEUE, "C14\\orders", ids, types, auth, 9))


@dataclass(frozen=True)
class Outcome:
    """Everything that a server lets be seen of the calls that it got."""

    answers: list[bytes | int]
    audit: list[str]
    denials: int
    lookups: int
    handles: int
    memory: int
    calls: dict[int, int]
    failures: dict[int, dict[int, int]]
    faults: dict[int, int]
    packets: tuple[int, int, int]


def _seen(served: Served, answers: list[bytes | int], audit: list[str]) -> Outcome:
    statistics, budgets = served.rpc.endpoint.statistics, served.context.budgets
    counted = next(one for one in served.rpc.statistics() if one.service.interface.name == "dscomm")
    calls = {n: operation.calls for n, operation in enumerate(counted.operations)}
    failures = {n: dict(codes) for n, codes in counted.failures().items()}
    return Outcome(
        [answer if isinstance(answer, int) else _without_handle(answer) for answer in answers],
        audit,
        served.context.denials,
        budgets.lookups.used,
        served.rpc.endpoint.groups.budget.used,
        budgets.memory.used,
        calls,
        failures,
        dict(statistics.fault_statuses),
        (statistics.packets_in, statistics.packets_out, statistics.calls_in),
    )


def _without_handle(stub: bytes) -> bytes:
    """An answer of S_DSLookupBegin is a handle, which is random, and a result."""
    return stub[20:] if len(stub) == 24 and any(stub[4:20]) else stub


async def outcome(
    level: int, together: bool, caplog: pytest.LogCaptureFixture, patch: Callable[[], None]
) -> Outcome:
    caplog.clear()
    may_not_delete = guarded((QUEUE, ORDERS), 0x000F_FFFF & ~DELETE, ALICE.sid)
    async with serving(may_not_delete) as served:
        served.context.budgets.lookups.quota = Quota(LOOKUPS - 1, 9, 9, 9)
        raw = await Raw.connect(served.port)
        wire = Wire(raw, level)
        await wire.bind()
        patch()
        validate = call(dscomm.VALIDATE_SERVER, dscomm.ValidateServer(Guid.NULL, 0, 1, 1, b""))
        [validated] = await wire.alone([validate])
        assert isinstance(validated, bytes)
        auth = ContextHandle(Guid(validated[4:20]))
        requests = list(script(auth))
        answers = await (wire.together(requests) if together else wire.alone(requests))
        lines = [record.getMessage() for record in caplog.records if record.name == "mqis.audit"]
        seen = _seen(served, answers, sorted(lines))
        await raw.close()
    return seen


@LEVELS
@scenario
async def test_every_way_checks_counts_and_answers_alike(
    level: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "mqis.audit")
    # A lookup that a busy machine cannot do at once is done later, when others have the budget.
    monkeypatch.setattr(walks, "SLICE_S", 60.0)
    taken: list[bool] = []
    short_way = Requests.whole

    def watched(self: Requests, data: bytes) -> object:
        call = short_way(self, data)
        taken.append(call is not None)
        return call

    alone = await outcome(
        level, False, caplog, lambda: monkeypatch.setattr(Requests, "whole", watched)
    )
    in_one_segment = await outcome(level, True, caplog, lambda: None)
    # All but the operation that does not exist, and S_DSValidateServer before them.
    assert taken.count(True) == 2 * len(list(script(ContextHandle.NULL)))
    ordinary = await outcome(
        level,
        True,
        caplog,
        lambda: monkeypatch.setattr(Requests, "whole", lambda _self, _data: None),
    )
    assert alone == ordinary
    assert in_one_segment == ordinary
    known = level > AuthLevel.NONE
    assert ordinary.denials == len(ordinary.audit) >= 2
    assert all("may not" in line for line in ordinary.audit)
    assert any("delete queue C14\\orders" in line for line in ordinary.audit)
    assert all((str(ALICE.sid) if known else "S-1-5-7") in line for line in ordinary.audit)
    assert ordinary.lookups == (LOOKUPS - 1)
    assert ordinary.memory > 0
    assert ordinary.handles == LOOKUPS  # the lookups, and the authentication
