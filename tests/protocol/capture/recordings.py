"""Captured traffic of our own servers and clients over sockets, as capture files.

They are recorded once for all tests of a process.
"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from examples.capture.recorder import Recorder
from examples.capture.scene import CLIENT, DIRECTORY, PEC, record
from examples.capture.scene import oletx as oletx_scene
from mqis.client import ServerAddress
from mqis.testing.security import SharedSecret
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.client.peers import HOST, connected, demo_store, served
from tests.waiting import in_time


@cache
def enterprise() -> bytes:
    """Discovery, endpoint mapper, directory, replication and OleTx."""
    with TemporaryDirectory() as directory:
        return asyncio.run(record(Path(directory))).pcap()


@cache
def oletx() -> bytes:
    """A session from set-up to teardown."""
    recorder = Recorder()
    asyncio.run(in_time(oletx_scene(recorder)))
    return recorder.pcap()


def validated(credentials: Any = None, authenticator: Any = None) -> bytes:
    """A client that makes the server prove itself: the server calls back for that."""

    async def scene() -> bytes:
        recorder, gss = Recorder(), SharedSecret()
        store = await asyncio.to_thread(demo_store)
        async with (
            served(store, gss=gss, authenticator=authenticator) as server,
            recorder.proxy(server.port, (PEC, DIRECTORY), CLIENT) as port,
            connected(ServerAddress(HOST, port), gss=gss, credentials=credentials) as client,
        ):
            await client.get(ObjectType.QUEUE, [PropId.Q_LABEL], path="ams-app1\\orders")
        return recorder.pcap()

    return asyncio.run(in_time(scene()))
