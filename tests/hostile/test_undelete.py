"""Undelete by callers who may not, and requests that are none."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mqis.client.directory import DirectoryClient
from mqis.client.remote import RemoteUser, connect
from mqis.client.servers import ServerAddress
from mqis.protocol.errors import DirectoryError
from mqis.protocol.undeletion.messages import (
    MAX_TEXT,
    MOST_RESTORED,
    UndeleteReply,
    UndeleteRequest,
    decode_reply,
    decode_request,
    encode,
)
from mqis.runtime.freeports import free_ports
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.wire.administration import ADMINISTRATION, MAX_REQUEST, UNDELETE, UndeleteCall
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.values import props
from mqis.wire.security.sid import ADMINISTRATORS
from tests.server.test_replication_serve import pec_config, with_values

PASSWORD = "rabbit hole"
Work = Callable[[DirectoryServer], Coroutine[Any, Any, None]]


def serve(directory: Path, work: Work) -> None:
    """One PEC with a journal; alice and carol are administrators, bob is not."""

    async def run() -> None:
        config = with_values(
            pec_config(directory / "pec1", free_ports(2)),
            security={"administrators": [str(ADMINISTRATORS)], "domain": "LAB"},
            replication={"journal": str(directory / "journal")},
        )
        accounts = AccountsFile(directory / "pec1" / "accounts.toml")
        for name in ("alice", "carol"):
            accounts.add(name, PASSWORD, domain="LAB", groups=[ADMINISTRATORS])
        accounts.add("bob", PASSWORD, domain="LAB")
        async with DirectoryServer(config, grace_s=1) as server:
            await work(server)

    asyncio.run(run())


async def logged_on(server: DirectoryServer, name: str | None) -> DirectoryClient:
    user = None if name is None else RemoteUser(name, "LAB", verify=False)
    address = ServerAddress("127.0.0.1", server.ready.port)
    return await connect([address], user, None if name is None else PASSWORD)


async def refused(client: DirectoryClient, request: UndeleteRequest) -> DirectoryError:
    with pytest.raises(DirectoryError) as caught:
        await client.undelete(request)
    return caught.value


async def lose_a_queue(client: DirectoryClient) -> None:
    await client.create(ObjectType.QUEUE, "pec1\\lost", props({PropId.Q_LABEL: "x"}))
    await client.delete(ObjectType.QUEUE, path="pec1\\lost")


def test_only_administrators_undelete(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mqis.audit")

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            await lose_a_queue(alice)
            plan = await alice.undelete(UndeleteRequest("plan"))
            assert [entry.path for entry in plan.entries] == ["pec1\\lost"]
            for name in ("bob", None):
                async with await logged_on(server, name) as stranger:
                    for verb in ("plan", "page", "restore", "look", "forget", "?"):
                        error = await refused(stranger, UndeleteRequest(verb, token=plan.token))
                        assert error.hresult == HResult.MQ_ERROR_ACCESS_DENIED
            async with await logged_on(server, "carol") as carol:
                error = await refused(carol, UndeleteRequest("restore", token=plan.token, count=1))
                assert "make it again" in str(error), "a plan is its author's"
            done = await alice.undelete(UndeleteRequest("restore", token=plan.token, count=1))
            assert [result.state for result in done.results] == ["restored"]

    serve(tmp_path, work)
    assert "may not undelete in enterprise" in caplog.text
    made = [record for record in caplog.records if record.message == "undelete"]
    assert [getattr(record, "details")["user"] for record in made] == ["LAB\\alice"]  # noqa: B009


def test_bad_requests_change_nothing_and_break_nothing(tmp_path: Path) -> None:
    bodies = [
        b"",
        b"{",
        b"[]",
        b"[" * 5000,
        b'{"verb": "plan", "verbs": 1}',
        b'{"verb": 1}',
        b'{"verb": "plan", "since_us": true}',
        b'{"verb": "plan", "since_us": 1e9}',
        b'{"verb": "plan", "since_us": 99999999999999999999999}',
        b'{"verb": "plan", "type": "dragon", "name": "x"}',
        b'{"verb": "page", "token": "x"}',
        b'{"verb": "page", "token": "x", "first": -1}',
        json.dumps({"verb": "plan", "by": "x" * (MAX_TEXT + 1)}).encode(),
        b"x" * MAX_REQUEST,
    ]

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            session = await alice._session()
            for body in bodies:
                answer = await session.call(UNDELETE, UndeleteCall(body), interface=ADMINISTRATION)
                assert answer.result == HResult.MQ_ERROR_INVALID_PARAMETER, body[:60]
                assert decode_reply(answer.answer or b"").error
            await lose_a_queue(alice)
            plan = await alice.undelete(UndeleteRequest("plan"))
            many = UndeleteRequest("restore", token=plan.token, first=1 << 40, count=1 << 40)
            assert (await alice.undelete(many)).results == ()
            for _ in range(6):  # the server keeps a few plans, and forgets the oldest
                last = await alice.undelete(UndeleteRequest("plan"))
            assert "make it again" in str(
                await refused(alice, UndeleteRequest("restore", token=plan.token, count=1))
            )
            done = await alice.undelete(
                UndeleteRequest("restore", token=last.token, count=MOST_RESTORED + 1)
            )
            assert [result.state for result in done.results] == ["restored"]

    serve(tmp_path, work)


def test_replies_that_are_none_are_refused() -> None:
    for body in (b"", b"1", b'{"entries": 1}', b'{"entries": [1]}', b'{"results": [{}]}'):
        with pytest.raises(DirectoryError):
            decode_reply(body)
    request = UndeleteRequest("plan", name="m\\q", since_us=5)
    assert decode_request(encode(request)) == request
    assert decode_reply(encode(UndeleteReply("t", total=3))) == UndeleteReply("t", total=3)
