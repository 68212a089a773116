"""``mqis oletx``: opens and accepts connections of transaction managers (MS-CMP)."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Annotated, Any

import typer

from mqis.cli.options import JsonOption
from mqis.cli.output import plain, print_json_line
from mqis.files import system_reason
from mqis.protocol.cmpo.nameobject import MAX_HOST_NAME, NameObject
from mqis.protocol.errors import ProtocolError
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.oletx.application_connection import Message, OleTxConnection
from mqis.runtime.oletx.oletx_endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import MAPPER_PORT, Address, MapperResolver
from mqis.texts import duration, host_port

app = typer.Typer(
    help="Connections between transaction managers: MS-CMP over MS-CMPO.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


# --- options and arguments ------------------------------------------------------------------------


def _name(text: str) -> NameObject:
    try:
        return NameObject.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _number(text: str) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number") from None
    if not 0 <= number <= 0xFFFF_FFFF:
        raise typer.BadParameter(f"{text} does not fit into 32 bits")
    return number


def _host(text: str) -> tuple[str, Address]:
    host, equals, where = text.partition("=")
    address, _, port = where.partition(":")
    if not equals or not host or not address or not (port or str(MAPPER_PORT)).isdigit():
        raise typer.BadParameter(f"{text!r} is not NAME=ADDRESS[:MAPPER_PORT]")
    return host, (address, int(port or MAPPER_PORT))


def _message(text: str) -> Message:
    kind, _, body = text.partition(":")
    try:
        return Message(_number(kind), bytes.fromhex(body))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not TYPE[:HEX]") from None


PartnerArgument = Annotated[
    NameObject,
    typer.Argument(
        parser=_name, metavar="HOST/CID", help="The partner: its NetBIOS name and identifier."
    ),
]
NameOption = Annotated[
    NameObject | None,
    typer.Option(
        "--name",
        "-n",
        parser=_name,
        metavar="HOST/CID",
        help="The name of this side. Default: this host, with a new identifier.",
        show_default=False,
    ),
]
HostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        metavar="NAME=ADDRESS[:MAPPER_PORT]",
        help="The address of a host and its endpoint mapper; other names are resolved. May be "
        "repeated.",
        show_default=False,
    ),
]
AddressOption = Annotated[str, typer.Option(help="The address to listen at.", metavar="ADDRESS")]
PortOption = Annotated[int, typer.Option(help="The port for sessions; 0: a free one.", metavar="N")]
MapperOption = Annotated[
    int, typer.Option(help="The port of the endpoint mapper; 0: a free one.", metavar="N")
]
TypeOption = Annotated[str, typer.Option("--type", "-t", metavar="N", help="The connection type.")]


# --- commands -------------------------------------------------------------------------------------


@app.command()
def listen(
    *,
    name: NameOption = None,
    host: HostOption = None,
    address: AddressOption = "127.0.0.1",
    port: PortOption = 0,
    mapper_port: MapperOption = MAPPER_PORT,
    echo: Annotated[bool, typer.Option("--echo", help="Send every message back.")] = False,
    json: JsonOption = False,
) -> None:
    """Accept connections of every type and show their messages, until a signal ends it."""
    endpoint = _endpoint(name, host, address, port, mapper_port)
    _run(_listen(endpoint, _Printer(json=json), echo=echo))


@app.command()
def connect(
    partner: PartnerArgument,
    *,
    connection_type: TypeOption = "0x101",
    send: Annotated[
        list[str] | None,
        typer.Option(
            "--send",
            "-s",
            metavar="TYPE[:HEX]",
            help="A message to send. May be repeated.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option(help="The time to wait for a further answer.", metavar="SECONDS")
    ] = 2.0,
    name: NameOption = None,
    host: HostOption = None,
    address: AddressOption = "127.0.0.1",
    port: PortOption = 0,
    mapper_port: MapperOption = 0,
    json: JsonOption = False,
) -> None:
    """Open a connection, send messages, and show the answers."""
    messages = [_message(text) for text in send or []]
    endpoint = _endpoint(name, host, address, port, mapper_port)
    kind = _number(connection_type)
    show = _Printer(json=json)
    _run(_connect(endpoint, show, partner, kind, messages=messages, wait_s=wait))


@app.command()
def ping(
    partner: PartnerArgument,
    *,
    count: Annotated[
        int, typer.Option("--count", "-c", help="The number of PINGs.", metavar="N")
    ] = 4,
    interval: Annotated[
        float, typer.Option(help="The time between two PINGs.", metavar="SECONDS")
    ] = 1.0,
    name: NameOption = None,
    host: HostOption = None,
    address: AddressOption = "127.0.0.1",
    port: PortOption = 0,
    mapper_port: MapperOption = 0,
    json: JsonOption = False,
) -> None:
    """Set up a session and send PINGs: tests the way to the partner and back."""
    endpoint = _endpoint(name, host, address, port, mapper_port)
    _run(_ping(endpoint, _Printer(json=json), partner, count, interval))


# --- implementation -------------------------------------------------------------------------------


def _endpoint(
    name: NameObject | None, hosts: list[str] | None, address: str, port: int, mapper_port: int
) -> OleTxEndpoint:
    if name is None:
        label = socket.gethostname().partition(".")[0][:MAX_HOST_NAME]
        name = NameObject(label.upper(), SystemEntropy().guid())
    resolver = MapperResolver(dict(_host(text) for text in hosts or []))
    return OleTxEndpoint(
        name, address=address, port=port, mapper_port=mapper_port, resolver=resolver
    )


def _run(scene: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run(scene)
    except OSError as error:
        raise ProtocolError(f"cannot listen: {system_reason(error)}") from error


class _Printer:
    """Prints what happens as it happens: a sentence, or with ``--json`` an object a line."""

    def __init__(self, *, json: bool) -> None:
        self._json = json

    def __call__(self, event: str, text: str, **facts: object) -> None:
        if self._json:
            print_json_line({"event": event, **facts})
        else:
            print(plain(text), flush=True)

    def ready(self, text: str, endpoint: OleTxEndpoint) -> None:
        session = host_port(endpoint.address, endpoint.port)
        mapper = host_port(endpoint.address, endpoint.mapper_port)
        sentence = f"{text}: {endpoint.name}, {session}, endpoint mapper {mapper}"
        self("ready", sentence, name=str(endpoint.name), session=session, mapper=mapper)

    def message(self, label: str, message: Message) -> None:
        body = message.body.hex()
        text = f"{label} 0x{message.type:x}, {len(message.body)} bytes {body}".rstrip()
        self("message", text, connection=label, type=message.type, body=body)


async def _listen(endpoint: OleTxEndpoint, show: _Printer, *, echo: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)

    async def accept(connection: OleTxConnection) -> None:
        label = f"{connection.partner.host_name}#{connection.id}"
        kind, partner = connection.connection_type, str(connection.partner)
        text = f"{label} opened: type 0x{kind:x}, {partner}"
        show("opened", text, connection=label, type=kind, partner=partner)
        try:
            async for message in connection:
                show.message(label, message)
                if echo:
                    await connection.send(*message)
        except ProtocolError as error:
            show("lost", f"{label} lost: {error}", connection=label, reason=str(error))
        else:
            show("closed", f"{label} closed", connection=label)

    endpoint.accept(None, accept)
    async with endpoint:
        show.ready("ready", endpoint)
        await ended.wait()


async def _connect(
    endpoint: OleTxEndpoint,
    show: _Printer,
    partner: NameObject,
    connection_type: int,
    *,
    messages: list[Message],
    wait_s: float,
) -> None:
    async with endpoint:
        show.ready("this side", endpoint)
        async with await endpoint.connect(partner, connection_type) as connection:
            version = connection.version.level_three
            text = f"connected: {partner}, level three version {version}"
            show("connected", text, partner=str(partner), level_three=version)
            for message in messages:
                await connection.send(*message)
            with suppress(TimeoutError):
                while (answer := await _answer(connection, wait_s)) is not None:
                    show.message(f"{partner.host_name}#{connection.id}", answer)


async def _answer(connection: OleTxConnection, wait_s: float) -> Message | None:
    async with asyncio.timeout(wait_s):
        return await connection.receive()


async def _ping(
    endpoint: OleTxEndpoint, show: _Printer, partner: NameObject, count: int, every_s: float
) -> None:
    async with endpoint:
        show.ready("this side", endpoint)
        start = asyncio.get_running_loop().time()
        link = await endpoint.session(partner)
        took = asyncio.get_running_loop().time() - start
        rank, version = link.session.rank.name.lower(), link.session.version
        levels = f"{version.level_one}.{version.level_two}.{version.level_three}"
        ms = round(took * 1000, 1)
        text = f"session with {partner} in {duration(ms / 1000)}: {rank} here, versions {levels}"
        show("session", text, partner=str(partner), ms=ms, rank=rank, versions=levels)
        for number in range(1, count + 1):
            ms = round(await endpoint.ping(partner) * 1000, 2)
            show("ping", f"PING {number}: {duration(ms / 1000)}", number=number, ms=ms)
            if number < count:
                await asyncio.sleep(every_s)
