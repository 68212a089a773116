"""Propagates the transaction of MS-CMP 4.1 between two endpoints and shows the boxcars."""

from __future__ import annotations

import argparse
import asyncio

from rich.console import Console
from rich.table import Table

from examples.oletx.propagate import (
    CONNTYPE_PARTNERTM_PROPAGATE,
    IsolationLevel,
    Mtag,
    Propagate,
    Subordinate,
    propagate,
)
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.protocol.cmpo.partner_session import CmpoSession
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import MapperResolver
from mqis.wire.cmp.boxcar import Boxcar
from mqis.wire.cmp.packet import MsgTag, Packet
from mqis.wire.guid import Guid

#: The partners of MS-CMPO 4.1: the first one is primary.
MACHINE_1 = NameObject.parse("Machine_1/b51996ef-c434-4f79-a288-56efd302fc8e")
MACHINE_2 = NameObject.parse("Machine_2/a3afb37b-f64a-4e6c-9017-f6a96ba6f166")
#: The transaction of MS-CMP 4.1.1.
TRANSACTION = Propagate(
    Guid.parse("9fa8a337-eaf7-4230-9232-b57379d65077"),
    IsolationLevel.SERIALIZABLE,
    "Example Transaction - 39 chars long....",
)
MAPPERS = {MACHINE_1: 21351, MACHINE_2: 21352}


class Watched(OleTxEndpoint):
    """An endpoint that prints the boxcars it receives."""

    def receive(self, session: CmpoSession, messages: int, boxcar: bytes, now: float) -> int | None:
        show(session.name, boxcar)
        return super().receive(session, messages, boxcar, now)


def show(sender: NameObject, boxcar: bytes) -> None:
    console = Console(highlight=False)
    table = Table(title=f"boxcar from {sender.host_name}: {len(boxcar)} bytes", box=None)
    for column in ("message", "master", "id", "type", "data"):
        table.add_column(column)
    for packet in Boxcar.from_bytes(boxcar).packets:
        fields = (packet.is_master, packet.connection_id, f"0x{packet.user_msg_type:x}")
        table.add_row(MsgTag(packet.tag).name, *map(str, fields), _meaning(packet))
    console.print(table, "")


def _meaning(packet: Packet) -> str:
    if packet.tag == MsgTag.USER_MESSAGE and packet.user_msg_type == Mtag.PROPAGATE:
        body = Propagate.from_bytes(bytes(packet.data))
        level = IsolationLevel(body.isolation).name
        return f"{body.transaction}, {level}, {body.description!r}"
    return bytes(packet.data).hex()


def _resolver(ports: dict[NameObject, int]) -> MapperResolver:
    return MapperResolver({name.host_name: ("127.0.0.1", port) for name, port in ports.items()})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.oletx", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("both", "serve", "propagate"), default="both")
    parser.add_argument(
        "--from-secondary", action="store_true", help="Machine_2 begins, so PokeW comes first"
    )
    return parser.parse_args()


async def both(asking: NameObject, asked: NameObject) -> Mtag:
    """Runs both endpoints in this process, on free ports."""
    resolver = MapperResolver()
    subordinate = Subordinate()
    async with (
        Watched(asking, mapper_port=0, resolver=resolver) as superior,
        Watched(asked, mapper_port=0, resolver=resolver) as inferior,
    ):
        inferior.accept(CONNTYPE_PARTNERTM_PROPAGATE, subordinate.accept)
        for endpoint in (superior, inferior):
            resolver.add(endpoint.name.host_name, "127.0.0.1", endpoint.mapper_port or 0)
        return await propagate(superior, inferior.name, TRANSACTION)


async def serve(name: NameObject) -> None:
    """Serves until Ctrl-C."""
    subordinate = Subordinate()
    port = MAPPERS[name]
    async with Watched(name, mapper_port=port, resolver=_resolver(MAPPERS)) as endpoint:
        endpoint.accept(CONNTYPE_PARTNERTM_PROPAGATE, subordinate.accept)
        print(f"{name} at port {endpoint.port}, endpoint mapper at {port}; Ctrl-C ends it")
        await asyncio.Event().wait()


async def ask(asking: NameObject, asked: NameObject) -> Mtag:
    port = MAPPERS[asking]
    async with Watched(asking, mapper_port=port, resolver=_resolver(MAPPERS)) as endpoint:
        return await propagate(endpoint, asked, TRANSACTION)


def main() -> None:
    arguments = _arguments()
    pair = (MACHINE_2, MACHINE_1) if arguments.from_secondary else (MACHINE_1, MACHINE_2)
    if arguments.what == "serve":
        try:
            asyncio.run(serve(pair[1]))
        except KeyboardInterrupt:
            return
    else:
        answer = asyncio.run(both(*pair) if arguments.what == "both" else ask(*pair))
        print(f"the answer: 0x{answer:x} {answer.name}")


if __name__ == "__main__":
    main()
