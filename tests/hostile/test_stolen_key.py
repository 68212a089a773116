"""A server's old signing key is in the hands of an attacker, and the server has a new one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.protocol.queueing.signing import signed_parts
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.messages import BscAck
from mqis.wire.mqqb.packet import UserMessage
from tests import waiting
from tests.hostile.queue_port import QueuePort, unsigned
from tests.server.enterprises import client_of, id_of
from tests.server.rotations import rotating


def forged(key: MachineKey, guid: Guid, to: str) -> UserMessage:
    """A message in the name of ``guid``, signed with a key that was once its own."""
    message = unsigned(guid, to, BscAck(Guid.NULL, guid, "psc2"), signature=b"\0" * 128)
    parts = signed_parts(message.header, message.properties)
    assert message.security is not None
    signature = key.sign(b"".join(parts))
    return replace(message, security=replace(message.security, signature=signature))


def delivered(server: DirectoryServer) -> int:
    assert server._replication is not None
    return server._replication.driver.node.queue.statistics.delivered


@pytest.mark.req("SEC-26-03")
def test_messages_signed_with_a_withdrawn_key_are_refused_everywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by the backup whose configuration still has the old key as that of its PSC."""
    caplog.set_level(logging.WARNING)

    def wrong() -> int:
        return sum("refused from psc2" in m and "signature is wrong" in m for m in caplog.messages)

    async def work() -> None:
        async with rotating(tmp_path) as made:
            stolen = MachineKey.open(made.site.homes["psc2"] / "signing.key")
            async with client_of(made["pec1"]) as client:
                guid = await id_of(client, ObjectType.MACHINE, "psc2")

            async def attack(name: str, answered: Callable[[], bool]) -> None:
                """Sends one message, and waits: honest ones may come in the meantime."""
                attacker = await QueuePort.open(made.site.ports[name], guid)
                await attacker.send(forged(stolen, guid, name))
                await waiting.until(answered)
                await attacker.close()

            before = delivered(made["bsc3"])
            await attack("bsc3", lambda: delivered(made["bsc3"]) > before)
            assert wrong() == 0, "it is the key yet"
            assert (await made.rotate("psc2"))["done"]
            assert "psc2" in made.config("bsc3").read_text()
            await attack("pec1", lambda: wrong() == 1)
            await attack("bsc3", lambda: wrong() == 2)
            await made.stop("bsc3")
            await made.start("bsc3")
            await attack("bsc3", lambda: wrong() == 3)

    waiting.run(work())
