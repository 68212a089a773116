"""A network between a server and its database: ``python -m bench.relay PORT MILLISECONDS``.

It prints a port, relays what comes there to PORT, and holds each answer back for so long. It ends
when its input ends.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack

from bench.processes import Served, serve

_CHUNK = 1 << 16


def start(port: int, delay_ms: int, resources: ExitStack) -> Served:
    return serve(resources, "bench.relay", str(port), str(delay_ms))


async def _pass_on(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_s: float
) -> None:
    """Ends the target behind the last bytes: timers of the same length keep their order."""
    loop = asyncio.get_running_loop()
    while data := await source.read(_CHUNK):
        if delay_s:
            loop.call_later(delay_s, target.write, data)
        else:
            target.write(data)
    loop.call_later(delay_s, target.close)


async def _relay(port: int, delay_s: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pass_on(reader, requests, 0), _pass_on(answers, writer, delay_s))

    server = await asyncio.start_server(connected, "127.0.0.1")
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    port, delay_ms = map(int, sys.argv[1:])
    asyncio.run(_relay(port, delay_ms / 1000))


if __name__ == "__main__":
    main()
