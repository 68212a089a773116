"""Starts a server and calls it, one call of each kind; ``serve`` and ``call`` do only one part."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable
from time import perf_counter
from typing import TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.shapes import interface as idl
from examples.shapes.client import ShapesClient, credentials, find_port, show
from examples.shapes.host import hosted
from examples.shapes.samples import SAMPLES
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import ProtocolError
from mqis.protocol.rpc.faults import RpcFault
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId

MAPPER_PORT = 11350
AUTH_TYPES = {"ntlm": AuthType.NTLM, "negotiate": AuthType.SPNEGO}
LEVELS = {
    "none": AuthLevel.NONE,
    "connect": AuthLevel.CONNECT,
    "packet": AuthLevel.PACKET,
    "integrity": AuthLevel.INTEGRITY,
    "privacy": AuthLevel.PRIVACY,
}
SYNTAXES = {"ndr20": NDR20, "ndr64": NDR64}

T = TypeVar("T")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.shapes", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("both", "serve", "call"), default="both")
    parser.add_argument("--address", default="127.0.0.1", help="(%(default)s)")
    parser.add_argument(
        "--mapper-port",
        type=int,
        default=MAPPER_PORT,
        help="port of the endpoint mapper, for serve and call (%(default)s)",
    )
    parser.add_argument("--auth", choices=AUTH_TYPES, default="negotiate", help="(%(default)s)")
    parser.add_argument("--level", choices=LEVELS, default="privacy", help="(%(default)s)")
    parser.add_argument("--syntax", choices=SYNTAXES, default="ndr64", help="(%(default)s)")
    return parser.parse_args()


async def _serve(address: str, mapper_port: int, console: Console) -> None:
    async with hosted(address, mapper_port=mapper_port) as host:
        console.print(
            f"shapes at {address} port {host.port}, endpoint mapper at port {host.mapper_port}; "
            "Ctrl-C ends it"
        )
        await asyncio.Event().wait()


async def _call(arguments: argparse.Namespace, mapper_port: int, console: Console) -> None:
    port = await find_port(arguments.address, mapper_port, idl.SYNTAX)
    syntax, level = SYNTAXES[arguments.syntax], LEVELS[arguments.level]
    async with await _connected(arguments.address, port, syntax, arguments.auth, level) as client:
        caller = await client.call(idl.WHO_AM_I, idl.Nothing())
        told = f"{arguments.syntax.upper()}, {arguments.level}"
        console.print(f"the mapper says port {port}; {told}; I am {caller.name or 'nobody'}\n")
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for heading in ("operation", "what it shows", "ms"):
            table.add_column(heading, no_wrap=True, justify="right" if heading == "ms" else "left")
        table.add_column("answer", no_wrap=True, max_width=max(12, console.width - 72))
        for sample in SAMPLES:
            answer, took = await _timed(client.call(sample.operation, sample.request, sample.given))
            right = "" if answer == sample.answer else "[red]unexpected: [/]"
            table.add_row(sample.operation.name, sample.name, took, right + escape(show(answer)))
        for row in await _conversation(client):
            table.add_row(*map(escape, row))
        console.print(table)


async def _connected(
    address: str, port: int, syntax: SyntaxId, auth: str, level: int
) -> ShapesClient:
    client = ShapesClient()
    wanted = None if level == AuthLevel.NONE else credentials(AUTH_TYPES[auth], level)
    await client.connect(address, port, transfers=[syntax], credentials=wanted)
    return client


async def _conversation(client: ShapesClient) -> list[tuple[str, str, str, str]]:
    """Makes the calls that depend on each other: a handle, callbacks, a fault."""
    opened, took = await _timed(client.call(idl.OPEN_PILE, idl.PileAsked(5)))
    rows = [("open_pile", "a context handle", took, str(opened.handle.uuid))]
    for count in (3, 3):
        asked = idl.TakeAsked(opened.handle, count)
        taken, took = await _timed(client.call(idl.TAKE, asked, {"count": count}))
        rows.append(("take", f"{count}, or what is left", took, show(taken.numbers)))
    closed, took = await _timed(client.call(idl.CLOSE_PILE, opened))
    rows.append(("close_pile", "the handle comes back as zeros", took, str(closed.handle.uuid)))
    number, took = await _timed(client.consult(5))
    rows.append(("consult", "a callback: 2 * 5, then + 1", took, str(number)))
    client.nest = 1
    number, took = await _timed(client.consult(5))
    rows.append(("consult", "a callback that calls the server", took, str(number)))
    start = perf_counter()
    try:
        await client.call(idl.FAIL, idl.Number(5))
    except RpcFault as fault:
        rows.append(("fail", "a fault", _ms(start), str(fault)))
    return rows


async def _timed(call: Awaitable[T]) -> tuple[T, str]:
    start = perf_counter()
    answer = await call
    return answer, _ms(start)


def _ms(start: float) -> str:
    return f"{(perf_counter() - start) * 1000:.1f}"


async def _both(arguments: argparse.Namespace, console: Console) -> None:
    async with hosted(arguments.address) as host:
        await _call(arguments, host.mapper_port, console)


def main() -> int:
    arguments, console = _arguments(), Console(highlight=False)
    if arguments.what == "serve":
        run = _serve(arguments.address, arguments.mapper_port, console)
    elif arguments.what == "call":
        run = _call(arguments, arguments.mapper_port, console)
    else:
        run = _both(arguments, console)
    try:
        asyncio.run(run)
    except KeyboardInterrupt:
        return 0
    except (ProtocolError, LookupError, OSError) as error:
        Console(stderr=True).print(f"{error}", style="red", highlight=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
