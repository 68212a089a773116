"""Undelete by callers who may not, and requests that are none."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Coroutine
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from mqis.cli.undelete import _show, _tell
from mqis.client.directory import DirectoryClient
from mqis.client.remote import RemoteUser, connect
from mqis.client.servers import ServerAddress
from mqis.protocol.documents import encode
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.security.information import SecurityInformation
from mqis.protocol.undeletion.messages import (
    MAX_TEXT,
    MOST_RESTORED,
    EntryResult,
    UndeleteEntry,
    UndeleteReply,
    UndeleteRequest,
    decode_reply,
    decode_request,
)
from mqis.server.accounts import AccountsFile
from mqis.server.directory_server import DirectoryServer
from mqis.server.undeletion import undelete_service
from mqis.server.undeletion.planning import PlannedObject, plan_undelete
from mqis.testing.ports import free_ports
from mqis.views.deletion.undelete_steps import carry_out, make_plan
from mqis.wire.administration import ADMINISTRATION, MAX_REQUEST, UNDELETE, AdministrationCall
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import ADMINISTRATORS, Sid
from tests.server.test_replication_serve import pec_config, with_values
from tests.waiting import DEADLINE_S

PASSWORD = "rabbit hole"
PATH = "pec1\\shut"
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


@pytest.mark.req("SEC-12-01")
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


@pytest.mark.req("SEC-12-03")
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
                answer = await session.call(
                    UNDELETE, AdministrationCall(body), interface=ADMINISTRATION
                )
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


@pytest.mark.req("SEC-12-03")
def test_one_search_at_a_time_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> list[PlannedObject]:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        return plan_undelete(*arguments)

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            await lose_a_queue(alice)
            monkeypatch.setattr(undelete_service, "plan_undelete", slow)
            first = asyncio.create_task(alice.undelete(UndeleteRequest("plan")))
            await asyncio.to_thread(begun.wait, DEADLINE_S)
            try:
                async with await logged_on(server, "carol") as carol:
                    for _ in range(3):
                        error = await refused(carol, UndeleteRequest("plan"))
                        assert error.hresult == HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
                    assert [site async for site in carol.find(ObjectType.SITE)]
            finally:
                go_on.set()
            assert (await first).total == 1

    serve(tmp_path, work)


@pytest.mark.req("SEC-12-04")
def test_permissions_that_were_taken_away_do_not_come_back(tmp_path: Path) -> None:
    dacl = int(SecurityInformation.DACL)

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            await alice.create(ObjectType.QUEUE, PATH, props({PropId.Q_LABEL: "x"}))
            for sddl in ("D:P(A;;GA;;;WD)", "D:P(A;;GA;;;BA)"):
                descriptor = parse_sddl(sddl).to_bytes()
                await alice.set_security(ObjectType.QUEUE, dacl, descriptor, PATH)
            before = await alice.get_security(ObjectType.QUEUE, dacl, PATH)
            await alice.delete(ObjectType.QUEUE, path=PATH)
            plan = await alice.undelete(UndeleteRequest("plan"))
            await alice.undelete(UndeleteRequest("restore", token=plan.token, count=1))
            assert await alice.get_security(ObjectType.QUEUE, dacl, PATH) == before
            async with await logged_on(server, "bob") as bob:
                with pytest.raises(DirectoryError):
                    await bob.delete(ObjectType.QUEUE, path=PATH)

    serve(tmp_path, work)


def user_properties(sid: Sid, certificate: bytes) -> dict[int, PropVariant]:
    digest = Guid(md5(certificate, usedforsecurity=False).digest())
    return props(
        {
            PropId.U_SID: sid.to_bytes(),
            PropId.U_SIGN_CERT: certificate,
            PropId.U_DIGEST: (digest,),
        }
    )


async def users(client: DirectoryClient) -> list[Guid | None]:
    return [entry.id async for entry in client.find(ObjectType.USER)]


@pytest.mark.req("SEC-12-02", "SEC-12-05")
def test_old_certificates_do_not_come_back_beside_new_ones(tmp_path: Path) -> None:
    """The user registers again while an administrator still looks at the plan."""
    sid = Sid.parse("S-1-5-21-1-2-3-1001")
    old, new = (bytes.fromhex(f"30043002050{n}") for n in (0, 1))

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            await alice.create(ObjectType.USER, None, user_properties(sid, old))
            (gone,) = await users(alice)
            assert gone is not None
            await alice.delete(ObjectType.USER, guid=gone)
            plan = await alice.undelete(UndeleteRequest("plan"))
            (entry,) = plan.entries
            assert (entry.state, entry.power) == ("ready", "a user: the certificates count again")
            await alice.create(ObjectType.USER, None, user_properties(sid, new))
            restore = UndeleteRequest("restore", token=plan.token, count=1)
            (result,) = (await alice.undelete(restore)).results
            assert (result.state, "has the same SID" in result.reason) == ("failed", True)
            (now,) = await users(alice)
            assert now != gone

    serve(tmp_path, work)


@pytest.mark.req("SEC-12-05")
def test_a_link_that_was_made_anew_is_not_doubled(tmp_path: Path) -> None:
    """Links have no names: it is the two sites that are taken."""

    def joining(one: Guid, other: Guid, cost: int) -> dict[int, PropVariant]:
        return props({PropId.L_NEIGHBOR1: one, PropId.L_NEIGHBOR2: other, PropId.L_COST: cost})

    async def links(client: DirectoryClient) -> list[Guid | None]:
        return [entry.id async for entry in client.find(ObjectType.ROUTINGLINK)]

    async def work(server: DirectoryServer) -> None:
        async with await logged_on(server, "alice") as alice:
            (own,) = [site.id async for site in alice.find(ObjectType.SITE)]
            other = await alice.create(ObjectType.SITE, "Leiden", props({PropId.S_PSC: "psc9"}))
            assert own is not None
            assert other is not None
            await alice.create(ObjectType.ROUTINGLINK, None, joining(own, other, 7))
            (gone,) = await links(alice)
            assert gone is not None
            await alice.delete(ObjectType.ROUTINGLINK, guid=gone)
            plan = await alice.undelete(UndeleteRequest("plan"))
            assert [entry.state for entry in plan.entries] == ["ready"]
            await alice.create(ObjectType.ROUTINGLINK, None, joining(other, own, 9))
            restore = UndeleteRequest("restore", token=plan.token, count=1)
            (result,) = (await alice.undelete(restore)).results
            assert (result.state, "joins the same sites" in result.reason) == ("failed", True)
            (now,) = await links(alice)
            assert now != gone

    serve(tmp_path, work)


NASTY = "pec1\\x\x1b]0;owned\x07\x1b[2J\u202e[red]"


class HostileServer:
    """A server that answers every page with more entries, and every step with more results."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.answers = 0

    def undelete(self, request: UndeleteRequest) -> UndeleteReply:
        self.answers += 1
        assert self.answers < 100, "the client goes on without end"
        entry = UndeleteEntry(
            "queue", NASTY, NASTY, 0, NASTY, NASTY, True, False, "ready", NASTY, NASTY
        )
        results = (EntryResult(NASTY, "failed", NASTY),) * 50 if request.count else ()
        return UndeleteReply("t", total=self.total, entries=(entry,) * 20, results=results)


@pytest.mark.req("SEC-12-06")
def test_a_hostile_server_fills_neither_memory_nor_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ProtocolError, match="are most"):
        make_plan(HostileServer(1 << 62), UndeleteRequest("plan"))
    server = HostileServer(30)
    plan = make_plan(server, UndeleteRequest("plan"))
    assert len(plan.entries) == 30, "no more than it said"
    outcome = carry_out(server, plan, wait_s=0)
    _show(plan)
    _tell(plan, outcome)
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert "owned" in text
        assert not set("\x1b\x07\u202e") & set(text)


@pytest.mark.req("SEC-12-06")
def test_replies_that_are_none_are_refused() -> None:
    for body in (b"", b"1", b'{"entries": 1}', b'{"entries": [1]}', b'{"results": [{}]}'):
        with pytest.raises(DirectoryError):
            decode_reply(body)
    request = UndeleteRequest("plan", name="m\\q", since_us=5)
    assert decode_request(encode(request)) == request
    assert decode_reply(encode(UndeleteReply("t", total=3))) == UndeleteReply("t", total=3)
