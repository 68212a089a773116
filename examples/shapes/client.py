"""The client's side of "shapes": finds the server, connects, calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from examples.shapes import interface as idl
from examples.shapes.host import DOMAIN, PASSWORD, USER
from mqis.protocol.rpc.client_side import AgreedContext
from mqis.protocol.rpc.faults import FaultStatus, RpcFault
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation, SyntaxId
from mqis.wire.rpc.tower import Tower

Q = TypeVar("Q")
R = TypeVar("R")


async def find_port(address: str, mapper_port: int, interface: SyntaxId) -> int:
    """Asks the endpoint mapper for the port of an interface."""
    tower = epmapper.TowerOctets(Tower.tcp(interface, 0, "0.0.0.0").to_bytes())
    asked = epmapper.MapAsked(None, tower, ContextHandle.NULL, 4)
    async with await RpcClient.connect(address, mapper_port, [epmapper.SYNTAX]) as client:
        found = await invoke(
            client, epmapper.EPMAPPER, epmapper.EPT_MAP, asked, given={"max_towers": 4}
        )
    ports = [Tower.from_bytes(t.octets).port for t in found.towers if t is not None]
    port = next((port for port in ports if port), None)
    if port is None:
        raise LookupError(f"the endpoint mapper at {address}:{mapper_port} has no {interface}")
    return port


def credentials(auth_type: int, level: int, password: str = PASSWORD) -> Credentials:
    """The credentials of the example's account."""
    who = LogonCredentials(USER, DOMAIN, password)
    return Credentials(PyspnegoInitiator(who), auth_type, level, "host/shapes")


class ShapesClient:
    """A client of the interface, which also answers the callback."""

    def __init__(self) -> None:
        self._client: RpcClient | None = None
        #: The number of times that the callback calls the server again before it answers.
        self.nest = 0
        self.callbacks = 0

    async def connect(
        self,
        address: str,
        port: int,
        *,
        transfers: Sequence[SyntaxId] = (NDR20, NDR64),
        credentials: Credentials | None = None,
        group_id: int = 0,
    ) -> None:
        self._client = await RpcClient.connect(
            address,
            port,
            [idl.SYNTAX],
            transfers=transfers,
            credentials=credentials,
            callbacks=self._called_back,
            group_id=group_id,
        )

    @property
    def rpc(self) -> RpcClient:
        assert self._client is not None, "connect first"
        return self._client

    async def __aenter__(self) -> ShapesClient:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def call(
        self, operation: Operation[Q, R], request: Q, given: Mapping[str, int] | None = None
    ) -> R:
        """Makes a call; ``given`` has array sizes of the answer that the request determines."""
        return await invoke(self.rpc, idl.SHAPES, operation, request, given=given or {})

    async def consult(self, number: int) -> int:
        return (await self.call(idl.CONSULT, idl.Number(number))).number

    async def _called_back(
        self, context: AgreedContext, opnum: int, stub: bytes, big_endian: bool
    ) -> bytes:
        if opnum != idl.DOUBLE_IT.opnum:
            raise RpcFault(FaultStatus.OP_RNG_ERROR)
        self.callbacks += 1
        syntax = Syntax.NDR64 if context.transfer == NDR64 else Syntax.NDR20
        number = idl.DOUBLE_IT.request.decode(stub, syntax, big_endian=big_endian).number
        if self.nest:
            self.nest -= 1
            number = await self.consult(number)
        return idl.DOUBLE_IT.response.encode(idl.Number(2 * number), syntax)


def show(value: Any) -> str:
    """A short text of a value, for people."""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes" if len(value) > 16 else f"<{value.hex(' ')}>"
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return "{" + ", ".join(show(getattr(value, f.name)) for f in fields(value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(show, value)) + ")"
    return str(value)
