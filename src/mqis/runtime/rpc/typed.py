"""Services and clients with typed requests and responses instead of stubs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, is_failure
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.interfaces import NDR20, NDR64, InterfaceDescription, Operation, SyntaxId

if TYPE_CHECKING:  # services need no client
    from mqis.runtime.rpc.rpc_client import RpcClient

Q = TypeVar("Q")
R = TypeVar("R")

Handler = Callable[[IncomingCall, Any], Any]
#: From a call, its stub and the syntax to the stub of the answer; None: the handler is asked, and
#: nothing has happened.
Shortcut = Callable[[IncomingCall, bytes, Syntax], bytes | None]

_SYNTAXES: dict[SyntaxId, Syntax] = {NDR20: Syntax.NDR20, NDR64: Syntax.NDR64}
_RESULTS = frozenset(int(result) for result in HResult)
#: A byte of a stub takes up to 0.1 microseconds to decode: larger stubs are decoded by one thread
#: for all of them, so that the event loop never competes with more than one.
DECODED_AT_ONCE = 32 * 1024
_decoder = ThreadPoolExecutor(1, "mqis-decode")
_NOTHING: Mapping[str, int] = {}


def interface_of(description: InterfaceDescription) -> Interface:
    return Interface(
        description.name,
        description.syntax,
        description.opnums,
        description.transfer_syntaxes,
        description.strict_context_handles,
    )


class _Method(NamedTuple):
    operation: Operation[Any, Any]
    #: The type that its handler returns, directly or as an awaitable.
    answer: type[Any]
    handler: Handler
    given: Callable[[Any], Mapping[str, int]]
    #: Error results of answers, by code; None if its answers have no result.
    failures: dict[int, int] | None
    shortcut: Shortcut | None

    def decode(self, stub: bytes, syntax: Syntax, *, big_endian: bool) -> tuple[Any, int]:
        return self.operation.request.decode_prefix(stub, syntax, big_endian=big_endian)

    def encode(self, answer: Any, syntax: Syntax, given: Mapping[str, int]) -> bytes:
        if self.failures is not None and answer.result:
            _count(self.failures, answer.result)
        return self.operation.response.encode(answer, syntax, given=given)


class TypedService:
    """A ``Service`` whose handlers take and return the dataclasses of their operations.

    A handler is a plain function or a coroutine function of (incoming call, request). ``sizes``
    returns the fields of a request that determine array sizes of its response. ``shortcuts`` are
    asked first, for little-endian requests.
    """

    #: Bytes of the largest stub that is decoded in the event loop.
    decoded_at_once = DECODED_AT_ONCE

    def __init__(
        self,
        description: InterfaceDescription,
        handlers: Mapping[Operation[Any, Any], Handler],
        sizes: Mapping[int, Callable[[Any], Mapping[str, int]]] | None = None,
        shortcuts: Mapping[int, Shortcut] | None = None,
    ) -> None:
        self._interface = interface_of(description)
        given, short = dict(sizes or {}), dict(shortcuts or {})
        self._methods = {
            op.opnum: _method(op, handler, given.get(op.opnum, _nothing), short.get(op.opnum))
            for op, handler in handlers.items()
        }

    @property
    def interface(self) -> Interface:
        return self._interface

    @property
    def operation_names(self) -> Mapping[int, str]:
        return {opnum: method.operation.name for opnum, method in self._methods.items()}

    @property
    def failures(self) -> Mapping[int, Mapping[int, int]]:
        """The counts of error results by operation and code; code 0 counts all unknown ones."""
        return {opnum: dict(method.failures or ()) for opnum, method in self._methods.items()}

    def dispatch(self, incoming: IncomingCall) -> bytes | Awaitable[bytes]:
        call = incoming.call
        method = self._methods.get(call.opnum)
        if method is None:
            raise RpcFault(FaultStatus.OP_RNG_ERROR, f"no operation {call.opnum}")
        syntax = _SYNTAXES[call.context.transfer]
        # The stub is dropped once decoded: a call may run for long, and needs it no more.
        stub, call.stub = call.stub, b""
        if method.shortcut is not None and not call.big_endian:
            known = method.shortcut(incoming, stub, syntax)
            if known is not None:
                return known
        if len(stub) > self.decoded_at_once:
            return _dispatch_in_thread(incoming, method, syntax, stub)
        request, end = method.decode(stub, syntax, big_endian=call.big_endian)
        if end != len(stub):  # a shortcut would take the bytes behind the request for a part of it
            incoming.question = None
        given = method.given(request)
        answer = method.handler(incoming, request)
        if not isinstance(answer, method.answer):
            return _encoded(answer, method, syntax, given)
        encoded = method.encode(answer, syntax, given)
        if incoming.keep is not None:
            incoming.keep(encoded)
        return encoded


async def _dispatch_in_thread(
    incoming: IncomingCall, method: _Method, syntax: Syntax, stub: bytes
) -> bytes:
    """Answers a call whose large stub is decoded in a thread."""
    loop = asyncio.get_running_loop()
    decode = partial(method.decode, stub, syntax, big_endian=incoming.big_endian)
    del stub
    request, _ = await loop.run_in_executor(_decoder, decode)
    del decode
    given = method.given(request)
    answer = method.handler(incoming, request)
    del request
    if not isinstance(answer, method.answer):
        answer = await answer
    return method.encode(answer, syntax, given)


def _method(
    operation: Operation[Any, Any],
    handler: Handler,
    given: Callable[[Any], Mapping[str, int]],
    shortcut: Shortcut | None,
) -> _Method:
    answer = operation.response.scope.cls
    reports = any(field.name == "result" for field in fields(answer))
    return _Method(operation, answer, handler, given, {} if reports else None, shortcut)


def same_answer(operation: Operation[Any, R], answer: R) -> Shortcut:
    """The shortcut of an operation that takes nothing and always has the same answer."""
    stubs = {syntax: operation.response.encode(answer, syntax) for syntax in Syntax}
    return lambda _call, _stub, syntax: stubs[syntax]


def _count(failures: dict[int, int], result: int) -> None:
    """Counts a failure; unknown results count as 0, since a peer may have chosen them."""
    if is_failure(result):
        key = result if result in _RESULTS else 0
        failures[key] = failures.get(key, 0) + 1


def _nothing(_request: object) -> Mapping[str, int]:
    return _NOTHING


async def _encoded(
    awaited: Awaitable[Any], method: _Method, syntax: Syntax, given: Mapping[str, int]
) -> bytes:
    return method.encode(await awaited, syntax, given)


async def call_back(
    incoming: IncomingCall,
    operation: Operation[Q, R],
    request: Q,
    *,
    given: Mapping[str, int] = _NOTHING,
) -> R:
    """Calls an operation of the client while it waits for the answer to ``incoming``."""
    syntax = _SYNTAXES[incoming.transfer]
    stub = operation.request.encode(request, syntax)
    answer, big_endian = await incoming.call_back(operation.opnum, stub)
    return operation.response.decode(
        answer, syntax, big_endian=big_endian, given=given, allow_surplus=True
    )


async def invoke(
    client: RpcClient,
    description: InterfaceDescription,
    operation: Operation[Q, R],
    request: Q,
    *,
    target: Guid | None = None,
    given: Mapping[str, int] = _NOTHING,
    timeout_s: float | None = 60.0,
) -> R:
    """Calls an operation; ``given`` has the sizes that decoding the response needs."""
    syntax = _SYNTAXES[client.transfer(description.syntax)]
    stub = operation.request.encode(request, syntax)
    answer = await client.call(
        description.syntax, operation.opnum, stub, target=target, timeout_s=timeout_s
    )
    return operation.response.decode(
        answer.stub, syntax, big_endian=answer.big_endian, given=given, allow_surplus=True
    )
