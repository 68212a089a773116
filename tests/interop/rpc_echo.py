"""Samba's test interface rpcecho, served: its own test programs judge what they get.

Descriptions after its IDL (librpc/idl/echo.idl). Run as a program it serves on a free port, prints
it, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.typed import TypedService
from mqis.wire.guid import Guid
from mqis.wire.ndr import (
    ENUM16,
    ENUM32,
    HYPER,
    U8,
    U16,
    U32,
    WSTRING,
    Choice,
    Conformant,
    Description,
    Given,
    Parameters,
    Ref,
    Struct,
    Union,
    Unique,
)
from mqis.wire.rpc.interfaces import NDR64, InterfaceDescription, Operation, SyntaxId
from mqis.wire.security.sid import Sid

SYNTAX = SyntaxId(Guid.parse("60a15ec5-4de8-11d7-a637-005056a20182"), 1)
DOMAIN, USER, PASSWORD = "DOM", "user", "secret"
INVALID_LEVEL = 0xC000_0148


@dataclass(frozen=True, slots=True)
class One:
    v: Any


@dataclass(frozen=True, slots=True)
class Two:
    v1: Any
    v2: Any


@dataclass(frozen=True, slots=True)
class Sized:
    length: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Info:
    """Of TestCall2: the request has the level that chooses the arm."""

    info: Choice
    status: int


@dataclass(frozen=True, slots=True)
class Enums:
    foo1: int
    foo2: Two
    foo3: Choice


@dataclass(frozen=True, slots=True)
class Surrounding:
    surrounding: tuple[int, ...]


_INFO1, _INFO4 = Struct(One, v=U8), Struct(One, v=HYPER)
_INFOS: dict[int, Description[Any] | None] = {
    1: _INFO1,
    2: Struct(One, v=U16),
    3: Struct(One, v=U32),
    4: _INFO4,
    5: Struct(Two, v1=U8, v2=HYPER),
    6: Struct(Two, v1=U8, v2=_INFO1),
    7: Struct(Two, v1=U8, v2=_INFO4),
}
_INFO_VALUES: dict[int, Any] = {
    1: One(10),
    2: One(20),
    3: One(30),
    4: One(40),
    5: Two(50, 60),
    6: Two(70, One(80)),
    7: Two(80, One(90)),
}
_ENUM2 = Struct(Two, v1=ENUM16, v2=ENUM32)
_SURROUNDING = Struct(Surrounding, x=U32, surrounding=Conformant(U16, size_is="x"))
_ENUMS = Parameters(
    Enums,
    foo1=Ref(ENUM16),
    foo2=Ref(_ENUM2),
    foo3=Ref(Union(U16, {1: ENUM16, 2: _ENUM2}, switch_is="foo1")),
)
_DATA = Conformant(U8, size_is=Given("length"))
_SURROUNDINGS = Parameters(One, v=Ref(_SURROUNDING))

ADD_ONE: Operation[One, One] = Operation(
    0, "AddOne", Parameters(One, v=U32), Parameters(One, v=U32)
)
ECHO_DATA: Operation[Sized, One] = Operation(
    1,
    "EchoData",
    Parameters(Sized, length=U32, data=Conformant(U8, size_is="length")),
    Parameters(One, v=_DATA),
)


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""


SINK_DATA: Operation[Sized, Nothing] = Operation(
    2,
    "SinkData",
    Parameters(Sized, length=U32, data=Conformant(U8, size_is="length")),
    Parameters(Nothing),
)
SOURCE_DATA: Operation[One, One] = Operation(
    3, "SourceData", Parameters(One, v=U32), Parameters(One, v=_DATA)
)
TEST_CALL: Operation[One, One] = Operation(
    4, "TestCall", Parameters(One, v=Ref(WSTRING)), Parameters(One, v=Unique(WSTRING))
)
TEST_CALL2: Operation[One, Info] = Operation(
    5,
    "TestCall2",
    Parameters(One, v=U16),
    Parameters(Info, info=Union(U16, _INFOS, switch_is=Given("level")), status=U32),
)
TEST_SLEEP: Operation[One, One] = Operation(
    6, "TestSleep", Parameters(One, v=U32), Parameters(One, v=U32)
)
TEST_ENUM: Operation[Enums, Enums] = Operation(7, "TestEnum", _ENUMS, _ENUMS)
TEST_SURROUNDING: Operation[One, One] = Operation(
    8, "TestSurrounding", _SURROUNDINGS, _SURROUNDINGS
)
TEST_DOUBLE_POINTER: Operation[One, One] = Operation(
    9, "TestDoublePointer", Parameters(One, v=Ref(Unique(Unique(U16)))), Parameters(One, v=U16)
)

ECHO = InterfaceDescription(
    "rpcecho",
    SYNTAX,
    (
        ADD_ONE,
        ECHO_DATA,
        SINK_DATA,
        SOURCE_DATA,
        TEST_CALL,
        TEST_CALL2,
        TEST_SLEEP,
        TEST_ENUM,
        TEST_SURROUNDING,
        TEST_DOUBLE_POINTER,
    ),
    opnums=10,
)


class EchoService(TypedService):
    """A service that answers as Samba's own echo server does."""

    #: How calls came: level, whether in NDR64, whether big-endian.
    seen: ClassVar[set[tuple[int, bool, bool]]] = set()

    def dispatch(self, incoming: IncomingCall) -> bytes | Awaitable[bytes]:
        self.seen.add((int(incoming.level), incoming.transfer == NDR64, incoming.big_endian))
        return super().dispatch(incoming)

    def __init__(self) -> None:
        super().__init__(
            ECHO,
            {
                ADD_ONE: lambda _call, asked: One((asked.v + 1) & 0xFFFF_FFFF),
                ECHO_DATA: lambda _call, asked: One(asked.data),
                SINK_DATA: lambda _call, _asked: Nothing(),
                SOURCE_DATA: lambda _call, asked: One(bytes(i & 0xFF for i in range(asked.v))),
                TEST_CALL: lambda _call, asked: One(asked.v),
                TEST_CALL2: lambda _call, asked: Info(Choice(asked.v, _INFO_VALUES[asked.v]), 0),
                TEST_SLEEP: self._sleep,
                TEST_ENUM: lambda _call, asked: Enums(2, Two(1, 2), _other(asked.foo3)),
                TEST_SURROUNDING: lambda _call, asked: One(
                    Surrounding((0,) * 2 * len(asked.v.surrounding))
                ),
                TEST_DOUBLE_POINTER: lambda _call, asked: One(asked.v.value or 0 if asked.v else 0),
            },
            sizes={
                ECHO_DATA.opnum: lambda asked: {"length": asked.length},
                SOURCE_DATA.opnum: lambda asked: {"length": asked.v},
                TEST_CALL2.opnum: lambda asked: {"level": asked.v},
            },
        )

    async def _sleep(self, _call: IncomingCall, asked: One) -> One:
        await asyncio.sleep(asked.v)
        return One(asked.v)


def _other(_choice: Choice) -> Choice:
    return Choice(2, Two(2, 1))


@asynccontextmanager
async def echo_server(address: str = "127.0.0.1") -> AsyncIterator[int]:
    sid = Sid.parse("S-1-5-21-1-2-3-1000")
    account = Account(DOMAIN, USER, sid, nt_hash(PASSWORD))
    server = RpcServer(
        [EchoService(), ManagementService(lambda: server.endpoint)],
        SystemEntropy(),
        authenticator=PyspnegoAuthenticator(MemoryAccounts([account]), "LAB", DOMAIN),
    )
    async with server:
        yield await server.listen(address)


async def main() -> None:
    async with echo_server() as port:
        print(port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
