"""A refused call costs its caller, not the others: no transaction is undone because of it.

A rolled-back transaction runs the other changes of its group again, makes replication start anew
from the store, and fails the forwarded changes that wait for an answer. So no client may cause one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from mqis.client.directory import DirectoryClient
from mqis.protocol.directory.objects import NAME_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.server.directory_server import DirectoryServer
from mqis.testing.ports import free_ports
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES, props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.security.sddl import parse_sddl
from tests.server.test_replication_serve import (
    MACHINE,
    QUEUE,
    SITE,
    client_of,
    pec_config,
    text,
    with_values,
)
from tests.waiting import run

Call = Callable[[DirectoryClient], Awaitable[object]]
ROUNDS = 8
#: On a machine: everybody may read it and create queues on it.
CREATE_QUEUES = "D:(A;;0x20024;;;WD)"
LABEL: dict[int, PropVariant] = props({PropId.Q_LABEL: "x"})
AUTHORITY: dict[int, PropVariant] = props({PropId.S_PSC: "lei"})
NOBODY = Guid.parse("00000000-0000-0000-0000-00000000dead")
LEIDEN = PropVariant(VarType.CLSID, Guid.parse("00000000-0000-0000-0000-000000001e1d"))

#: Calls at a PEC that has the site Leiden, whose PSC has no machine yet, and no right to spare.
REFUSED: dict[str, tuple[Call, HResult]] = {
    "an existing path": (
        lambda c: c.create(QUEUE, "pec1\\there", LABEL),
        HResult.MQ_ERROR_QUEUE_EXISTS,
    ),
    "an unknown machine": (
        lambda c: c.create(QUEUE, "nobody\\q", LABEL),
        HResult.MQ_ERROR_MACHINE_NOT_FOUND,
    ),
    "a path that is none": (
        lambda c: c.create(QUEUE, "pec1\\a\\b", LABEL),
        HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME,
    ),
    "a property of another type": (
        lambda c: c.create(QUEUE, "pec1\\new", {PropId.S_PATHNAME: text("x")}),
        HResult.MQ_ERROR_ILLEGAL_PROPID,
    ),
    "a value of another type": (
        lambda c: c.create(QUEUE, "pec1\\new", {PropId.Q_LABEL: PropVariant(VarType.UI4, 1)}),
        HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
    ),
    "a damaged descriptor": (
        lambda c: c.create(QUEUE, "pec1\\new", LABEL, b"\xff" * 40),
        HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR,
    ),
    "a change of nothing": (
        lambda c: c.set(QUEUE, LABEL, guid=NOBODY),
        HResult.MQDS_OBJECT_NOT_FOUND,
    ),
    "a deletion of nothing": (
        lambda c: c.delete(QUEUE, "pec1\\nothing"),
        HResult.MQDS_OBJECT_NOT_FOUND,
    ),
    "a site whose server is unknown": (
        lambda c: c.create(MACHINE, "other", {PropId.QM_SITE_ID: LEIDEN}),
        HResult.MQ_ERROR_DS_ERROR,
    ),
}
DENIED: dict[str, Call] = {
    "a new site": lambda c: c.create(SITE, "Haarlem", AUTHORITY),
    "a site's authority": lambda c: c.set(SITE, AUTHORITY, "Delft"),
    "a deletion of the server": lambda c: c.delete(MACHINE, "pec1"),
    "a descriptor": lambda c: c.set_security(SITE, 4, b"\x01\x00\x04\x80" + bytes(16), "Delft"),
}


class Served:
    """A PEC with a SQLite store, and three clients at it."""

    def __init__(self, server: DirectoryServer, clients: list[DirectoryClient]) -> None:
        self.server = server
        self.clients = clients

    @property
    def counts(self) -> tuple[int, int, int]:
        """Transactions undone, commits failed, restarts of replication."""
        directory, replication = self.server._directory, self.server._replication
        assert directory is not None
        assert replication is not None
        writer = directory.writer
        return writer.rollbacks, writer.failures, replication.driver.statistics.restarts

    async def between_creates(self, number: int, call: Call) -> BaseException | None:
        """The outcome of a call that shares its transaction with creates of others, if it can."""
        good, bad, other = self.clients
        outcomes = await asyncio.gather(
            good.create(QUEUE, f"pec1\\a{number}", LABEL),
            call(bad),
            other.create(QUEUE, f"pec1\\b{number}", LABEL),
            return_exceptions=True,
        )
        assert not isinstance(outcomes[0], BaseException)
        assert not isinstance(outcomes[2], BaseException)
        return outcomes[1] if isinstance(outcomes[1], BaseException) else None


async def serve(
    directory: Path, work: Callable[[Served], Awaitable[None]], *, anybody: bool = True
) -> None:
    """Runs ``work`` on a PEC; ``anybody``: every caller is an administrator."""
    config = pec_config(directory / "pec1", free_ports(2))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(DirectoryServer(config, 1))
        async with client_of(server) as client:
            await client.create(QUEUE, "pec1\\there", LABEL)
            await client.create(SITE, "Leiden", {**AUTHORITY, PropId.S_SITEID: LEIDEN})
            await client.set_security(MACHINE, 4, parse_sddl(CREATE_QUEUES).to_bytes(), "pec1")
        if not anybody:
            server.reread(with_values(config, security={"administrators": []}))
        clients = [await stack.enter_async_context(client_of(server)) for _ in range(3)]
        await work(Served(server, clients))


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_undoes_nothing(tmp_path: Path, name: str) -> None:
    call, expected = REFUSED[name]

    async def work(served: Served) -> None:
        for number in range(ROUNDS):
            outcome = await served.between_creates(number, call)
            assert isinstance(outcome, DirectoryError)
            assert outcome.hresult == expected
        assert served.counts == (0, 0, 0)

    run(serve(tmp_path, work))


@pytest.mark.parametrize("name", DENIED)
def test_a_denied_call_undoes_nothing(tmp_path: Path, name: str) -> None:
    async def work(served: Served) -> None:
        for number in range(ROUNDS):
            outcome = await served.between_creates(number, DENIED[name])
            assert isinstance(outcome, DirectoryError)
            assert outcome.hresult == HResult.MQ_ERROR_ACCESS_DENIED
        assert served.counts == (0, 0, 0)

    run(serve(tmp_path, work, anybody=False))


# --- calls at random ------------------------------------------------------------------------------

_TEXTS = ("", "x", "pec1", "lei", "Leiden", "a\\b", "\ud800", "é" * 300, "q" * 3000, "nul\x01")
_BLOBS = (b"", b"\0", b"\xff" * 40, b"\x01\x00\x04\x80" + bytes(16), bytes(5000))
_GUIDS = (Guid.NULL, NOBODY, Guid(b"\xff" * 16))
_NUMBERS = {VarType.UI1: 8, VarType.I2: 15, VarType.UI2: 16, VarType.I4: 31, VarType.UI4: 32}
_TYPES = [kind for kind in ObjectType if kind is not ObjectType.DELETEDOBJECT]


def value_of(random: Random, vt: VarType) -> PropVariant:
    if vt in _NUMBERS:
        return PropVariant(vt, random.choice((0, 1, 2, 4, 8, (1 << _NUMBERS[vt]) - 1)))
    if vt is VarType.LPWSTR:
        return PropVariant(vt, random.choice(_TEXTS))
    if vt is VarType.BLOB:
        return PropVariant(vt, random.choice(_BLOBS))
    if vt is VarType.CLSID:
        return PropVariant(vt, random.choice(_GUIDS))
    if vt is VarType.VECTOR_CLSID:
        return PropVariant(vt, tuple(random.choices(_GUIDS, k=random.randrange(4))))
    return PropVariant(VarType.UI4, 7)


def properties_of(random: Random, kind: ObjectType) -> dict[int, PropVariant]:
    own = [entry for entry in PROPERTIES.values() if entry.object_type is kind]
    chosen = random.sample(own, min(len(own), random.randrange(1, 7)))
    found: dict[int, PropVariant] = {entry.id: value_of(random, entry.vt) for entry in chosen}
    if random.random() < 0.1:
        found[random.choice(list(PROPERTIES))] = value_of(random, VarType.LPWSTR)
    return found


def call_at_random(random: Random, client: DirectoryClient) -> Awaitable[object]:
    """A call that changes something, or would; the server itself stays what it is."""
    kind = random.choice(_TYPES)
    names = [f"n{random.randrange(6)}", f"pec1\\q{random.randrange(6)}", random.choice(_TEXTS)]
    path = random.choice(names) if kind in NAME_PROPERTY else None
    properties = properties_of(random, kind)
    guid = random.choice(_GUIDS)
    whom = (path, None) if path is not None and random.random() < 0.8 else (None, guid)
    if whom[0] in ("pec1", "Delft"):
        return client.create(kind, path, properties)
    match random.randrange(6):
        case 0 | 1 | 2:
            descriptor = random.choice((None, None, *_BLOBS[1:]))
            return client.create(kind, path, properties, descriptor)
        case 3:
            return client.set(kind, properties, *whom)
        case 4:
            information = random.choice((1, 2, 4, 8, 15, 1 << 30, 1 << 31))
            return client.set_security(kind, information, random.choice(_BLOBS[1:]), *whom)
        case _:
            return client.delete(kind, *whom)


@pytest.mark.parametrize("seed", range(3))
def test_calls_at_random_undo_nothing(tmp_path: Path, seed: int) -> None:
    random = Random(seed)

    async def work(served: Served) -> None:
        refused = made = 0
        for _ in range(120):
            calls = [call_at_random(random, client) for client in served.clients]
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(outcome, DirectoryError):
                    refused += 1
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    made += 1
            assert served.counts == (0, 0, 0)
        assert refused > 100
        assert made > 10

    run(serve(tmp_path, work))
