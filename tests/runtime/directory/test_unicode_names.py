"""Names of estates over RPC: what exists is found, and a setting lets clients create more."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.protocol.directory.world import QUEUE
from tests.runtime.activedirectory.passing import through
from tests.runtime.activedirectory.test_changes import LABEL, create
from tests.runtime.directory.serving import ADMIN, SETTINGS, scenario, serving
from tests.runtime.directory.test_objects import create as create_own

OK = HResult.MQ_OK
ILLEGAL = HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME


@pytest.mark.parametrize(
    ("allowed", "path", "result"),
    [
        (False, "C14\\größe", ILLEGAL),
        (False, "C14\\two words", ILLEGAL),
        (True, "C14\\größe", OK),
        (True, "C14\\two words", OK),
        (True, "C14\\a;b", ILLEGAL),
        (True, "C14\\a\nb", ILLEGAL),
        (True, "C14\\a ", ILLEGAL),
    ],
)
@pytest.mark.req("SEC-15-12")
@scenario
async def test_a_setting_lets_clients_create_other_names(
    allowed: bool, path: str, result: HResult
) -> None:
    settings = replace(SETTINGS, unicode_names=allowed)
    async with serving(settings=settings) as served, served.caller(ADMIN) as caller:
        got = await create_own(caller, QUEUE, path, props({PropId.Q_LABEL: "x"}))
        assert got.result == result
        with served.world.store.read() as view:
            assert (view.find(QUEUE, path) is not None) == (result == OK)


@pytest.mark.parametrize("queue", ["größe", "two words", "a;b", "注文"])
@scenario
async def test_a_pass_through_server_finds_what_active_directory_has(queue: str) -> None:
    async with through() as passing:
        made = passing.server.put(
            f"CN={queue.replace(';', chr(92) + ';')},CN=msmq,{passing.estate.computer}",
            objectClass=b"mSMQQueue",
            mSMQLabelEx=b"found",
        )

        def find() -> DirectoryObject | None:
            with passing.store.read() as view:
                return view.find(ObjectType.QUEUE, f"SRV1\\{queue}")

        found = await asyncio.to_thread(find)
        assert found is not None
        assert (found.id, found.value(PropId.Q_LABEL)) == (made, "found")
        result, _ = await create(passing.caller, ObjectType.QUEUE, f"SRV1\\{queue}2", LABEL)
        assert result == ILLEGAL
