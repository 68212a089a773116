"""Calls that reach a server which does not decide: what it asks whom, and what goes out after.

Three servers in this process, with a journal each; what they said to each other is read there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import pytest

from mqis.client.directory import DirectoryClient
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.lab import demo
from mqis.protocol.directory.objects import (
    ENTERPRISE_PARTITION,
    IDENTIFIER_PROPERTY,
    DirectoryObject,
)
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.information import SecurityInformation
from mqis.runtime.node.members import Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.directory_server import DirectoryServer
from mqis.server.identity import seed_text
from mqis.storage.journal.journal_reader import records
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.journal import RecordKind, RecordState
from mqis.wire.mqds.catalogue import prop, props
from mqis.wire.mqds.certificates import digest_of
from mqis.wire.mqds.keys import key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqdsrp.messages import ChangePropagation, ChangeRequest, decode_message
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.sddl import parse_sddl
from tests.server.test_replication_serve import (
    MACHINE,
    QUEUE,
    SITE,
    client_of,
    joined,
    pec_config,
    text,
    with_values,
)
from tests.waiting import wait_until

T = TypeVar("T")
CN, USER, LINK = ObjectType.CN, ObjectType.USER, ObjectType.ROUTINGLINK


class Enterprise:
    """``pec`` in Delft, ``psc`` and ``bsc`` in Leiden, in a loop of their own."""

    pec: DirectoryServer
    psc: DirectoryServer
    bsc: DirectoryServer

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._loop = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.run(self._start())

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def close(self) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        ports = free_ports(3)
        config = pec_config(self._directory / "pec1", ports)
        hosts: dict[str, object] = {**dict(config.hosts.entries), "bsc3": f"127.0.0.1:{ports[2]}"}
        config = with_values(self._journaled(config, "pec1"), hosts=hosts)
        self.pec = await self._stack.enter_async_context(DirectoryServer(config, 1))
        second = await joined(self.pec, self._directory / "psc2", ports[1])
        second = self._journaled(second, "psc2")
        self.psc = await self._stack.enter_async_context(DirectoryServer(second, 1))
        third = await self._backup(second, ports[2])
        self.bsc = await self._stack.enter_async_context(DirectoryServer(third, 1))

    def _journaled(self, config: Config, name: str) -> Config:
        """As the text has it, servers are believed in everything they ask for."""
        journal = str(self._directory / f"{name}-journal")
        return with_values(config, replication={"journal": journal, "forwarded_powers": True})

    async def _backup(self, config: Config, port: int) -> Config:
        home = self._directory / "bsc3"
        home.mkdir()
        key = MachineKey.open(home / "key").public
        section = config.replication
        assert section.id is not None
        psc_key = MachineKey.open(Path(section.key)).public
        async with client_of(self.psc) as client:
            made = await client.create(
                MACHINE,
                "bsc3",
                props(
                    {
                        PropId.QM_SERVICE: 2,
                        PropId.QM_SIGN_PKS: key_list(key),
                    }
                ),
            )
        open_store(str(home / "d.db"), create=True).close()
        config = with_values(
            config,
            server={"name": "bsc3", "role": "bsc"},
            store={"url": f"sqlite:{home / 'd.db'}"},
            replication={
                "port": port,
                "key": str(home / "key"),
                "psc": "psc2",
                "id": str(made),
                "seeds": [*section.seeds, seed_text(Seed("psc2", section.id, psc_key))],
            },
        )
        return self._journaled(config, "bsc3")

    # --- looking ----------------------------------------------------------------------------------

    def site(self, name: str) -> Guid:
        found = self.find(self.pec, SITE, name)
        assert found is not None
        return found.id

    def find(self, server: DirectoryServer, kind: ObjectType, path: str) -> DirectoryObject | None:
        store = server._directory
        assert store is not None
        with store.store.read() as view:
            return view.find(kind, path)

    def wait(self, look: Callable[[], T | None]) -> T:
        return wait_until(look)

    def everywhere(self, kind: ObjectType, path: str) -> DirectoryObject:
        for server in (self.psc, self.bsc):
            self.wait(partial(self.find, server, kind, path))
        return self.wait(partial(self.find, self.pec, kind, path))

    def messages(self, server: DirectoryServer, state: RecordState) -> list[object]:
        """The messages that a server has decided to send, or has received, in order."""
        journal = Path(server.config.replication.journal)
        return [
            decode_message(entry.record.body)
            for entry in records(journal)
            if entry.record.kind is RecordKind.MESSAGE and entry.record.state is state
        ]

    def requests(self, server: DirectoryServer) -> list[ChangeRequest]:
        """Change Remote Object, as ``server`` raised it."""
        sent = self.messages(server, RecordState.QUEUED)
        name = server.config.server.name
        return [m for m in sent if isinstance(m, ChangeRequest) and m.requester == name]

    def propagated(
        self, server: DirectoryServer, wanted: Callable[[DirectoryChange], bool]
    ) -> DirectoryChange:
        """Propagate Directory Change: the first such change that ``server`` sent."""

        def look() -> DirectoryChange | None:
            for message in self.messages(server, RecordState.QUEUED):
                if isinstance(message, ChangePropagation):
                    for change in message.changes:
                        if wanted(change):
                            return change
            return None

        return self.wait(look)

    def asks(
        self, server: DirectoryServer, call: Callable[[DirectoryClient], Awaitable[T]]
    ) -> tuple[T, ChangeRequest]:
        """Make a call at a server; its result, and the one request that it led to."""
        before = len(self.requests(server))

        async def work() -> T:
            async with client_of(server) as client:
                return await call(client)

        result: T = self.run(work())
        new = self.wait(lambda: self.requests(server)[before:] or None)
        assert len({request.request_id for request in new}) == 1
        return result, new[0]


@pytest.fixture(scope="module")
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    made = Enterprise(tmp_path_factory.mktemp("enterprise"))
    yield made
    made.close()


@pytest.fixture(params=["psc", "bsc"])
def asked(request: pytest.FixtureRequest, enterprise: Enterprise) -> DirectoryServer:
    """A server that is not the PEC."""
    found: DirectoryServer = getattr(enterprise, request.param)
    return found


def unique(asked: DirectoryServer, name: str) -> str:
    return f"{name}-{asked.config.server.name}"


# --- creating -------------------------------------------------------------------------------------


def network(name: str) -> dict[int, PropVariant]:
    return props({PropId.CN_NAME: name, PropId.CN_PROTOCOLID: 1})


def user(name: str) -> dict[int, PropVariant]:
    certificate = demo.self_made_certificate(name)
    digest = (Guid(digest_of(certificate)),)
    return props({PropId.U_SIGN_CERT: certificate, PropId.U_DIGEST: digest})


@pytest.mark.req("MQDS-3.1.4.4-08", "MQDS-3.1.4.4-11")
@pytest.mark.parametrize("kind", [SITE, CN, USER, LINK])
def test_enterprise_wide_objects_are_the_pecs_to_create(
    enterprise: Enterprise, asked: DirectoryServer, kind: ObjectType
) -> None:
    name = unique(asked, f"new{int(kind)}")
    ends = [enterprise.site("Delft"), enterprise.site("Leiden")]
    ends = ends if asked is enterprise.psc else ends[::-1]
    every: dict[ObjectType, dict[int, PropVariant]] = {
        SITE: props({PropId.S_PSC: "nobody"}),
        CN: network(name),
        USER: user(name),
        LINK: props(
            {
                PropId.L_NEIGHBOR1: ends[0],
                PropId.L_NEIGHBOR2: ends[1],
                PropId.L_COST: 7,
            }
        ),
    }
    properties = every[kind]
    path = name if kind in (SITE, CN) else None
    guid, request = enterprise.asks(asked, lambda client: client.create(kind, path, properties))
    assert (request.change.command, request.change.partition) == (Command.CREATE, Guid.NULL)
    assert request.partition == ENTERPRISE_PARTITION
    assert (request.change.guid, request.change.path) == (None, path or "")
    values = dict(request.change.properties)
    for propid in set(properties) - {PropId.U_SIGN_CERT}:  # which is a list of them now
        assert values[propid].value == properties[propid].value
    chosen = values[IDENTIFIER_PROPERTY[kind]].value
    assert isinstance(chosen, Guid)
    assert guid in (None, chosen)
    directory = enterprise.pec._directory
    assert directory is not None
    with directory.store.read() as view:
        assert view.get(kind, chosen) is not None, "acknowledged before it was made"


@pytest.mark.departs("MQDS-3.1.1.2-01")
@pytest.mark.req("MQDS-3.1.4.4-09")
def test_a_queue_goes_to_the_site_of_its_computer(
    enterprise: Enterprise, asked: DirectoryServer
) -> None:
    path = "pec1\\" + unique(asked, "far")
    guid, request = enterprise.asks(
        asked, lambda c: c.create(QUEUE, path, props({PropId.Q_LABEL: "x"}))
    )
    assert request.partition == request.change.partition == enterprise.site("Delft")
    made = enterprise.find(enterprise.pec, QUEUE, path)
    assert made is not None
    assert made.id == guid


@pytest.mark.req("MQDS-3.1.4.4-09", "MQDS-3.1.4.4-10")
def test_a_backup_asks_even_about_its_own_site(enterprise: Enterprise) -> None:
    values: dict[int, PropVariant] = props({PropId.Q_LABEL: "x"})
    _, request = enterprise.asks(enterprise.bsc, lambda c: c.create(QUEUE, "bsc3\\near", values))
    assert request.partition == enterprise.site("Leiden")
    assert request.psc == "psc2"
    assert enterprise.find(enterprise.psc, QUEUE, "bsc3\\near") is not None
    leiden: dict[int, PropVariant] = props({PropId.QM_SITE_ID: enterprise.site("Leiden")})
    _, request = enterprise.asks(enterprise.bsc, lambda c: c.create(MACHINE, "near1", leiden))
    assert request.partition == enterprise.site("Leiden")
    assert enterprise.find(enterprise.psc, MACHINE, "near1") is not None


@pytest.mark.req("MQDS-3.1.4.4-10")
def test_a_machine_goes_to_the_site_that_it_names(
    enterprise: Enterprise, asked: DirectoryServer
) -> None:
    name = unique(asked, "m")
    delft: dict[int, PropVariant] = props({PropId.QM_SITE_ID: enterprise.site("Delft")})
    _, request = enterprise.asks(asked, lambda client: client.create(MACHINE, name, delft))
    assert request.partition == enterprise.site("Delft")
    assert enterprise.find(enterprise.pec, MACHINE, name) is not None


@pytest.mark.req("MQDS-3.1.4.4-07")
def test_what_the_authority_says_is_final(enterprise: Enterprise) -> None:
    """Here the name is free, there it is taken: nothing is created here."""
    values: dict[int, PropVariant] = props({PropId.Q_LABEL: "x"})
    enterprise.asks(enterprise.psc, lambda c: c.create(QUEUE, "pec1\\taken", values))
    copy = enterprise.wait(lambda: enterprise.find(enterprise.psc, QUEUE, "pec1\\taken"))
    directory = enterprise.psc._directory
    assert directory is not None
    enterprise.run(directory.writer.submit(lambda tx: tx.delete(copy)))  # a copy that is behind
    with pytest.raises(DirectoryError) as refused:
        enterprise.asks(enterprise.psc, lambda c: c.create(QUEUE, "pec1\\taken", values))
    assert refused.value.hresult == HResult.MQ_ERROR_QUEUE_EXISTS
    assert enterprise.find(enterprise.psc, QUEUE, "pec1\\taken") is None
    enterprise.run(directory.writer.submit(lambda tx: tx.insert(copy)))


@pytest.mark.req("MQDS-3.1.4.4-30", "MQDS-3.1.6.3-08")
@pytest.mark.parametrize("kind", [SITE, QUEUE])
def test_a_create_is_propagated(enterprise: Enterprise, kind: ObjectType) -> None:
    path = "Rotterdam" if kind is SITE else "pec1\\told"

    values = (PropId.S_PSC if kind is SITE else PropId.Q_LABEL, "x")

    async def create() -> None:
        async with client_of(enterprise.pec) as client:
            await client.create(kind, path, {values[0]: text(values[1])})

    enterprise.run(create())
    made = enterprise.everywhere(kind, path)
    change = enterprise.propagated(enterprise.pec, lambda c: c.path == path)
    assert (change.command, change.seq) == (Command.CREATE, made.seq)
    assert change.partition == (Guid.NULL if kind is SITE else enterprise.site("Delft"))
    told = dict(change.properties)
    assert told[IDENTIFIER_PROPERTY[kind]].value == made.id
    assert told[values[0]] == text(values[1])


# --- deleting -------------------------------------------------------------------------------------


def new_queue(enterprise: Enterprise, path: str) -> DirectoryObject:
    async def create() -> None:
        async with client_of(enterprise.pec) as client:
            await client.create(QUEUE, path, props({PropId.Q_LABEL: "x"}))

    enterprise.run(create())
    return enterprise.everywhere(QUEUE, path)


@pytest.mark.parametrize(
    "by_path",
    [
        pytest.param(True, marks=pytest.mark.req("MQDS-3.1.4.5-02", "MQDS-3.1.4.5-04")),
        pytest.param(False, marks=pytest.mark.req("MQDS-3.1.4.6-02", "MQDS-3.1.4.6-04")),
    ],
)
def test_a_delete_is_forwarded_and_propagated(
    enterprise: Enterprise, asked: DirectoryServer, by_path: bool
) -> None:
    queue = new_queue(enterprise, "pec1\\" + unique(asked, f"gone{by_path}"))
    target: dict[str, Any] = {"path": queue.path} if by_path else {"guid": queue.id}
    _, request = enterprise.asks(asked, lambda client: client.delete(QUEUE, **target))
    assert (request.change.command, request.change.guid) == (Command.DELETE, queue.id)
    assert request.partition == enterprise.site("Delft")
    assert enterprise.find(enterprise.pec, QUEUE, queue.path or "") is None
    change = enterprise.propagated(
        enterprise.pec, lambda c: c.command is Command.DELETE and c.guid == queue.id
    )
    assert (change.path, change.partition) == (None, enterprise.site("Delft"))
    assert change.seq > queue.seq


@pytest.mark.req("MQDS-3.1.4.5-02")
def test_a_site_is_the_pecs_to_delete(enterprise: Enterprise) -> None:
    async def create() -> None:
        async with client_of(enterprise.pec) as client:
            await client.create(SITE, "Gouda", props({PropId.S_PSC: "x"}))

    enterprise.run(create())
    site = enterprise.everywhere(SITE, "Gouda")
    _, request = enterprise.asks(enterprise.psc, lambda client: client.delete(SITE, path="Gouda"))
    assert (request.partition, request.change.guid) == (Guid.NULL, site.id)
    assert enterprise.find(enterprise.pec, SITE, "Gouda") is None


# --- changing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "by_path",
    [
        pytest.param(True, marks=pytest.mark.req("MQDS-3.1.4.9-03", "MQDS-3.1.6.4-04")),
        pytest.param(False, marks=pytest.mark.req("MQDS-3.1.4.10-03", "MQDS-3.1.4.10-05")),
    ],
)
def test_an_update_is_forwarded_and_propagated(
    enterprise: Enterprise, asked: DirectoryServer, by_path: bool
) -> None:
    queue = new_queue(enterprise, "pec1\\" + unique(asked, f"set{by_path}"))
    target: dict[str, Any] = {"path": queue.path} if by_path else {"guid": queue.id}
    values: dict[int, PropVariant] = props({PropId.Q_LABEL: unique(asked, "new")})
    _, request = enterprise.asks(asked, lambda client: client.set(QUEUE, values, **target))
    assert (request.change.command, request.change.guid) == (Command.UPDATE, queue.id)
    assert request.partition == enterprise.site("Delft")
    assert dict(request.change.properties)[PropId.Q_LABEL] == values[PropId.Q_LABEL]
    made = enterprise.find(enterprise.pec, QUEUE, queue.path or "")
    assert made is not None
    assert made.value(PropId.Q_LABEL) == values[PropId.Q_LABEL].value
    change = enterprise.propagated(
        enterprise.pec, lambda c: c.command is Command.UPDATE and c.guid == queue.id
    )
    assert (change.partition, change.seq) == (enterprise.site("Delft"), made.seq)
    assert dict(change.properties)[PropId.Q_LABEL] == values[PropId.Q_LABEL]


@pytest.mark.req("MQDS-3.1.4.9-03", "MQDS-3.1.4.10-05")
def test_a_site_is_the_pecs_to_change(enterprise: Enterprise, asked: DirectoryServer) -> None:
    values: dict[int, PropVariant] = props({PropId.S_INTERVAL1: 3})
    _, request = enterprise.asks(asked, lambda c: c.set(SITE, values, path="Delft"))
    assert (request.partition, request.change.guid) == (Guid.NULL, enterprise.site("Delft"))
    change = enterprise.propagated(
        enterprise.pec,
        lambda c: c.command is Command.UPDATE and c.guid == enterprise.site("Delft"),
    )
    assert change.partition == Guid.NULL


@pytest.mark.req("MQDS-3.1.4.13-04", "MQDS-3.1.4.13-11")
def test_permissions_are_merged_here_and_go_as_a_whole(
    enterprise: Enterprise, asked: DirectoryServer
) -> None:
    queue = new_queue(enterprise, "pec1\\" + unique(asked, "guarded"))
    part = parse_sddl("D:(A;;0x20;;;WD)").to_bytes()
    dacl = SecurityInformation.DACL
    _, request = enterprise.asks(
        asked, lambda client: client.set_security(QUEUE, dacl, part, path=queue.path)
    )
    values = dict(request.change.properties)
    assert request.change.command is Command.UPDATE
    sent = values[PropId.Q_SECURITY].value
    assert isinstance(sent, bytes)
    before = queue.value(PropId.Q_SECURITY)
    assert sent not in (part, before), "neither the part alone, nor what was there"
    made = enterprise.find(enterprise.pec, QUEUE, queue.path or "")
    assert made is not None
    assert made.value(PropId.Q_SECURITY) == sent
    change = enterprise.propagated(
        enterprise.pec, lambda c: c.command is Command.UPDATE and c.guid == queue.id
    )
    assert dict(change.properties)[PropId.Q_SECURITY].value == sent
    assert (change.partition, change.seq) == (enterprise.site("Delft"), made.seq)


@pytest.mark.req("MQDS-3.1.4.16-05", "MQDS-3.1.4.16-07")
def test_another_machine_changes_where_its_site_is_decided(
    enterprise: Enterprise, asked: DirectoryServer
) -> None:
    kind = unique(asked, "type")
    values: dict[int, PropVariant] = props({PropId.QM_MACHINE_TYPE: kind})
    _, request = enterprise.asks(asked, lambda c: c.set_machine_properties("pec1", values))
    assert request.change.command is Command.UPDATE
    assert request.partition == enterprise.site("Delft")
    made = enterprise.find(enterprise.pec, MACHINE, "pec1")
    assert made is not None
    assert made.value(PropId.QM_MACHINE_TYPE) == kind
    change = enterprise.propagated(
        enterprise.pec,
        lambda c: (
            c.guid == made.id
            and dict(c.properties).get(PropId.QM_MACHINE_TYPE) == prop(PropId.QM_MACHINE_TYPE, kind)
        ),
    )
    assert (change.command, change.seq) == (Command.UPDATE, made.seq)


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.req("MQDS-3.1.4.21.6-01", "MQDS-3.1.4.21.7-01")
def test_every_server_answers_reads_from_its_own_copy(enterprise: Enterprise) -> None:
    queue = new_queue(enterprise, "pec1\\read")
    before = [len(enterprise.requests(s)) for s in (enterprise.psc, enterprise.bsc)]

    async def read(server: DirectoryServer) -> object:
        async with client_of(server) as client:
            got = await client.get(QUEUE, [PropId.Q_INSTANCE], path="pec1\\read")
            return got[PropId.Q_INSTANCE].value

    for server in (enterprise.pec, enterprise.psc, enterprise.bsc):
        assert enterprise.run(read(server)) == queue.id
    assert [len(enterprise.requests(s)) for s in (enterprise.psc, enterprise.bsc)] == before
