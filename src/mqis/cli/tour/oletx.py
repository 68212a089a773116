"""The step of the tour about OleTx: two partners, one session, many connections."""

from __future__ import annotations

import asyncio

from mqis.cli.tour.guide import Guide
from mqis.protocol.cmpo.nameobject import NameObject
from mqis.runtime.oletx.connection import OleTxConnection
from mqis.runtime.oletx.endpoint import OleTxEndpoint
from mqis.runtime.oletx.resolver import MapperResolver

_ALPHA = NameObject.parse("ALPHA/b51996ef-c434-4f79-a288-56efd302fc8e")
_BETA = NameObject.parse("BETA/a3afb37b-f64a-4e6c-9017-f6a96ba6f166")
_TYPE, _PING, _PONG = 0x101, 0x2001, 0x2002
_CONNECTIONS, _MESSAGES = 20, 50


def partners(guide: Guide) -> None:
    guide.step("OleTx", "two partners on loopback exchange messages over one session")
    answers = asyncio.run(_exchange())
    wanted = [[_body(c, m) for m in range(_MESSAGES)] for c in range(_CONNECTIONS)]
    amount = f"{_CONNECTIONS} connections, {_MESSAGES} messages on each"
    missing = sum(got != want for got, want in zip(answers, wanted, strict=True))
    guide.confirm(
        f"{amount}: every answer came, in order",
        answers == wanted,
        saw=f"{missing} connections with other answers",
        expected="none",
    )


async def _exchange() -> list[list[bytes]]:
    hosts = MapperResolver()
    async with (
        OleTxEndpoint(_ALPHA, mapper_port=0, resolver=hosts) as alpha,
        OleTxEndpoint(_BETA, mapper_port=0, resolver=hosts) as beta,
    ):
        for name, endpoint in (("ALPHA", alpha), ("BETA", beta)):
            assert endpoint.mapper_port is not None
            hosts.add(name, "127.0.0.1", endpoint.mapper_port)
        beta.accept(_TYPE, _echo)
        return await asyncio.gather(*(_converse(alpha, number) for number in range(_CONNECTIONS)))


async def _echo(connection: OleTxConnection) -> None:
    async for message in connection:
        await connection.send(_PONG, message.body)


async def _converse(alpha: OleTxEndpoint, number: int) -> list[bytes]:
    async with await alpha.connect(_BETA, connection_type=_TYPE) as connection:
        for index in range(_MESSAGES):
            await connection.send(_PING, _body(number, index))
        answers: list[bytes] = []
        async for message in connection:
            answers.append(bytes(message.body))
            if len(answers) == _MESSAGES:
                break
        return answers


def _body(connection: int, message: int) -> bytes:
    return f"{connection}:{message}".encode()
