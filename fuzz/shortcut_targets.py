"""The short ways of frequent calls beside the ordinary ones: all that can be seen is the same.

Two equal servers get the same calls. One has all short ways; on the other one every PDU is decoded,
every call passes the queues, and no answer is remembered. The bytes of an input choose callers,
calls, handles, commits in between, and what is spoiled in a request. After each step the bytes of
the answers and the lines of the audit trail have to be the same, and at the end the counters and
the budgets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from fuzz.mutate import mutated
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.directory.descriptors import default_descriptor
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.rpc.channel import Channel
from mqis.protocol.rpc.client_side import AgreedContext, Bound, ClientConnection
from mqis.runtime.directory import walks
from mqis.runtime.directory.context import DirectoryContext, DirectorySettings
from mqis.runtime.directory.dscomm import DscommService
from mqis.runtime.rpc.builtin import ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.runtime.rpc.server_connection import ServerProtocol
from mqis.runtime.writer import GroupCommitWriter
from mqis.storage.sqlite import SqliteStore
from mqis.testing.security import SharedSecret
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import (
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.ndr import ContextHandle, Syntax
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.rpc import mgmt
from mqis.wire.rpc.interfaces import NDR20, NDR64, Operation
from mqis.wire.security.acl import Acl

Q = TypeVar("Q")

QUEUES, LABELS, STEPS = 6, 3, 50
#: The share of calls after which the loop turns; others are answered in the same turn.
TURNS = 0.6
NOW = 1_000
QUEUE = ObjectType.QUEUE
#: Relations PREQ and PRNE.
EQUAL, NOT_EQUAL = 4, 5
#: Before the identifiers of the machine and its queues.
FIRST_ID = 1 << 20
VALIDATE = dscomm.ValidateServer(Guid.NULL, 0, 1, 0, b"")
#: Callers: the protection, the name and the transfer syntax.
CALLERS = (
    (AuthLevel.NONE, "", NDR20),
    (AuthLevel.NONE, "", NDR64),
    (AuthLevel.INTEGRITY, "alice", NDR20),
    (AuthLevel.PRIVACY, "bob", NDR64),
)
#: How often each of them calls; what is encrypted takes longest.
WEIGHTS = (9, 4, 6, 1)
PROPERTY_LISTS = (
    (PropId.Q_INSTANCE, PropId.Q_LABEL, PropId.Q_QUOTA),
    (PropId.Q_PATHNAME, PropId.Q_LABEL),
    (PropId.Q_SECURITY,),
    (PropId.Q_QMID, PropId.Q_SCOPE, PropId.Q_MODIFY_TIME),
)


class _Numbers:
    """Identifiers in order: both servers give the same ones."""

    def __init__(self, first: int) -> None:
        self._next = first

    def guid(self) -> Guid:
        self._next += 1
        return Guid(self._next.to_bytes(16, "big"))


class _Pipe(asyncio.Transport):
    """Keeps what a server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        """Nothing is read from here."""

    def resume_reading(self) -> None:
        """Nothing is read from here."""

    def abort(self) -> None:
        self.closed = True


class _Side:
    """One of the two servers."""

    def __init__(self, directory: Path, *, short: bool) -> None:
        self._short = short
        self.store = SqliteStore(directory / f"{'short' if short else 'ordinary'}.db")
        _fill(self.store)
        settings = DirectorySettings(clock=lambda: NOW)
        writer = GroupCommitWriter(self.store)
        self.context = DirectoryContext(self.store, writer, _Numbers(1 << 40), settings)
        if not short:
            self.context.memory = None
        self.service = DscommService(self.context)
        services = [self.service, ManagementService(lambda: self.rpc.endpoint)]
        self.rpc = RpcServer(
            services,
            _Numbers(1 << 50),
            authenticator=SharedSecret(),
            budgets=self.context.budgets,
            turn_s=inf,
        )

    def connect(self) -> _End:
        return _End(self.rpc, short=self._short)

    def seen(self) -> tuple[object, ...]:
        """Everything that operators can see."""
        budgets, (served, managed) = self.context.budgets, self.rpc.statistics()
        return (
            asdict(self.rpc.endpoint.statistics),
            [operation.calls for operation in served.operations],
            [operation.calls for operation in managed.operations],
            self.service.failures,
            self.context.denials,
            budgets.memory.used,
            budgets.lookups.used,
            self.rpc.endpoint.groups.budget.used,
        )


class _End:
    """A server's end of a connection."""

    def __init__(self, rpc: RpcServer, *, short: bool) -> None:
        self.pipe = _Pipe()
        self.protocol = ServerProtocol(rpc)
        self.protocol.connection_made(self.pipe)
        if not short:
            machine = self.protocol._machine
            assert machine is not None
            vars(machine)["at_once"] = lambda _data, _now: None
            vars(machine._requests)["whole"] = lambda _data: None

    async def exchange(self, data: bytes) -> bytes:
        self.protocol.data_received(data)
        for _ in range(1_000):
            if self.pipe.written or not self.protocol._tasks:
                break
            await asyncio.sleep(0.001)
        answer = bytes(self.pipe.written)
        self.pipe.written.clear()
        return answer


class _Client:
    """A caller, who is connected with both servers and sends both the same bytes."""

    def __init__(self, number: int, sides: Sequence[_Side], trail: _Trail) -> None:
        level, name, transfer = CALLERS[number]
        self._ends = [side.connect() for side in sides]
        self._trail = trail
        self._machine = ClientConnection()
        self._contexts: tuple[AgreedContext, ...] = ()
        self.syntax = Syntax.NDR64 if transfer == NDR64 else Syntax.NDR20
        self.auths: list[ContextHandle] = []
        self.lookups: list[ContextHandle] = []
        self.usable = True
        channel = None
        if level > AuthLevel.NONE:
            context = SharedSecret(name=name).initiator(AuthType.KERBEROS, level, "host")
            channel = Channel(1, AuthType.KERBEROS, level, context)
        self._machine.bind([dscomm.SYNTAX, mgmt.SYNTAX], transfers=[transfer], channel=channel)

    async def bind(self) -> None:
        while not self._contexts:
            for event in self._machine.receive(await self._exchange(self._machine.data_to_send())):
                if isinstance(event, Bound):
                    self._contexts = tuple(event.contexts)

    async def call(self, context: int, opnum: int, stub: bytes, spoil: Random | None) -> bytes:
        """The stub of the answer; nothing if it was a fault."""
        self._machine.request(self._contexts[context], opnum, stub)
        data = self._machine.data_to_send()
        answer = await self._exchange(data if spoil is None else mutated([data], spoil))
        if spoil is not None or any(end.pipe.closed for end in self._ends):
            self.leave()  # what the client's side knows is of no use any more
            return b""
        return b"".join(getattr(event, "stub", b"") for event in self._machine.receive(answer))

    async def _exchange(self, data: bytes) -> bytes:
        """Sends bytes to both; returns what both have answered."""
        told = []
        for end in self._ends:
            answer = await end.exchange(data)
            told.append((answer, end.pipe.closed, self._trail.taken()))
        assert told[0] == told[1], f"{told[0]} with short ways, {told[1]} without"
        return told[0][0]

    def leave(self) -> None:
        self.usable = False
        for end in self._ends:
            end.protocol.connection_lost(None)


def _fill(store: SqliteStore) -> None:
    """Queues that everyone, somebody, or nobody may read."""
    open_to_all = default_descriptor(QUEUE, None)
    closed = replace(open_to_all, dacl=Acl(()))
    with store.write() as tx:
        events = DirectoryEvents(tx, NOW, _Numbers(0))
        site = events.create(ObjectType.SITE, "SITE", props({PropId.S_PSC: "M1"}))
        events = DirectoryEvents(tx, NOW, _Numbers(FIRST_ID), own_site=site.id)
        events.create(ObjectType.MACHINE, "M1", {})
        for number in range(QUEUES):
            descriptor = closed if number % 4 == 3 else open_to_all
            label = props({int(PropId.Q_LABEL): f"label {number % LABELS}"})
            events.create(QUEUE, f"M1\\q{number}", label, security=descriptor.to_bytes())


class _Trail(logging.Handler):
    """The lines of the audit trail since the last look."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def taken(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


class Twins:
    """Both servers, and the callers."""

    def __init__(self, directory: Path) -> None:
        self._sides = (_Side(directory, short=True), _Side(directory, short=False))
        self._clients: dict[int, _Client] = {}
        self._trail = _Trail()
        audit = logging.getLogger("mqis.audit")
        audit.addHandler(self._trail)
        audit.propagate = False

    async def run(self, rng: Random) -> None:
        for _ in range(STEPS):
            await self._step(rng)
            if rng.random() < TURNS:
                await asyncio.sleep(0)  # a view ends with its turn of the loop
        short, ordinary = (side.seen() for side in self._sides)
        assert short == ordinary, f"{short} with short ways, {ordinary} without"

    async def _step(self, rng: Random) -> None:
        kind = rng.random()
        if kind < 0.01:
            await asyncio.sleep(0)  # who is told of a commit is told in another turn
            self._commit(rng)
            await asyncio.sleep(0)
        elif kind < 0.011:
            for side in self._sides:
                settings = side.context.settings
                anonymous = not settings.anonymous_in_everyone
                side.context.reconfigure(replace(settings, anonymous_in_everyone=anonymous))
        else:
            [caller] = rng.choices(range(len(CALLERS)), WEIGHTS)
            await self._call(rng, await self._client(caller))

    async def _client(self, number: int) -> _Client:
        found = self._clients.get(number)
        if found is None or not found.usable:
            found = self._clients[number] = _Client(number, self._sides, self._trail)
            await found.bind()
        return found

    def _commit(self, rng: Random) -> None:
        """Changes a label, and what may be read; sometimes the transaction fails."""
        path, label = f"M1\\q{rng.randrange(QUEUES)}", f"label {rng.randrange(LABELS)}"
        fails, opened = rng.random() < 0.2, rng.random() < 0.9
        descriptor = default_descriptor(QUEUE, None)
        if not opened:
            descriptor = replace(descriptor, dacl=Acl(()))
        values: dict[int, Value] = {
            PropId.Q_LABEL: label,
            PropId.Q_SECURITY: descriptor.to_bytes(),
        }
        for side in self._sides:
            with suppress(InterruptedError), side.store.write() as tx:
                queue = tx.find(QUEUE, path)
                assert queue is not None
                events = DirectoryEvents(tx, NOW, _Numbers(1 << 60))
                events.update_directory_object(queue, props(values))
                if fails:
                    raise InterruptedError

    async def _call(self, rng: Random, client: _Client) -> None:
        if not client.auths or rng.random() < 0.01:
            stub = _encoded(dscomm.VALIDATE_SERVER, VALIDATE, client.syntax)
            answer = await client.call(0, dscomm.VALIDATE_SERVER.opnum, stub, None)
            _note(client.auths, answer)
            return
        context, opnum, stub = _request(rng, client)
        if rng.random() < 0.15:
            stub = mutated([stub], rng)
        spoil = Random(rng.getrandbits(64)) if rng.random() < 0.01 else None
        answer = await client.call(context, opnum, stub, spoil)
        if opnum == dscomm.LOOKUP_BEGIN.opnum:
            _note(client.lookups, answer)


def _request(rng: Random, client: _Client) -> tuple[int, int, bytes]:
    """A call that is in order, except that a handle may be closed already."""
    auth, lookups = rng.choice(client.auths), client.lookups
    kind = rng.random()
    if kind < 0.05:
        return 1, mgmt.IS_SERVER_LISTENING.opnum, b""
    if kind < 0.5:
        ids = rng.choice(PROPERTY_LISTS)
        types, path = (VarType.NULL,) * len(ids), f"M1\\q{rng.randrange(QUEUES + 1)}"
        size = rng.choice((0, 0, 0, 0, 0, 16))
        if kind < 0.15:
            by_guid = dscomm.GetPropsGuid(QUEUE, _identifier(rng), ids, types, auth, size)
            stub = _encoded(dscomm.GET_PROPS_GUID, by_guid, client.syntax)
            return 0, dscomm.GET_PROPS_GUID.opnum, stub
        read = dscomm.GetProps(QUEUE, path, ids, types, auth, size)
        return 0, dscomm.GET_PROPS.opnum, _encoded(dscomm.GET_PROPS, read, client.syntax)
    if kind < 0.7:
        columns = ColumnSet(tuple(rng.choice(PROPERTY_LISTS)))
        sort = rng.choice((None, None, SortSet((SortColumn(PropId.Q_LABEL, 1),))))
        begin = dscomm.LookupBegin(None, _restriction(rng), columns, sort, auth)
        return 0, dscomm.LOOKUP_BEGIN.opnum, _encoded(dscomm.LOOKUP_BEGIN, begin, client.syntax)
    handle = rng.choice(lookups or [ContextHandle.NULL])
    if kind < 0.9:
        following = dscomm.LookupNext(handle, rng.choice((2, 3, 6, 100)), auth, 0)
        return 0, dscomm.LOOKUP_NEXT.opnum, _encoded(dscomm.LOOKUP_NEXT, following, client.syntax)
    if handle in lookups and rng.random() < 0.7:
        lookups.remove(handle)
    end = dscomm.HandleGiven(handle)
    return 0, dscomm.LOOKUP_END.opnum, _encoded(dscomm.LOOKUP_END, end, client.syntax)


def _identifier(rng: Random) -> Guid:
    """That of the machine, of a queue, or of nothing."""
    return Guid((FIRST_ID + rng.randrange(1, QUEUES + 3)).to_bytes(16, "big"))


def _restriction(rng: Random) -> RestrictionSet | None:
    """By text, which has an index or not, by an identifier, or by a number."""
    label = PropVariant(VarType.LPWSTR, f"label {rng.randrange(LABELS)}")
    path = PropVariant(VarType.LPWSTR, f"m1\\Q{rng.randrange(QUEUES)}")
    guid = PropVariant(VarType.CLSID, _identifier(rng))
    number = PropVariant(VarType.UI4, rng.randrange(2))
    restrictions = (
        PropertyRestriction(EQUAL, PropId.Q_LABEL, label),
        PropertyRestriction(rng.choice((EQUAL, NOT_EQUAL)), PropId.Q_PATHNAME, path),
        PropertyRestriction(rng.choice((EQUAL, NOT_EQUAL)), PropId.Q_QMID, guid),
        PropertyRestriction(EQUAL, PropId.Q_INSTANCE, guid),
        PropertyRestriction(EQUAL, PropId.Q_PRIV_LEVEL, number),
    )
    kind = rng.random()
    if kind < 0.2:
        return None
    return RestrictionSet(tuple(rng.sample(restrictions, 2 if kind < 0.4 else 1)))


@lru_cache(maxsize=10_000)
def _encoded(operation: Operation[Q, Any], request: Q, syntax: Syntax) -> bytes:
    return operation.request.encode(request, syntax)


def _note(handles: list[ContextHandle], answer: bytes) -> None:
    """Keeps the handle of an answer, and the last few others."""
    if len(answer) == 24 and answer.endswith(bytes(4)) and any(answer[4:20]):
        handles.append(ContextHandle(Guid(answer[4:20])))
        del handles[:-6]


_LOOP = asyncio.new_event_loop()
_HOME = TemporaryDirectory(prefix="mqis-fuzz-")


@cache
def _twins() -> Twins:
    walks.SLICE_S = 60.0  # a busy machine does not change which lookups are done at once

    async def make() -> Twins:
        return Twins(Path(_HOME.name))

    return _LOOP.run_until_complete(make())


def run_shortcuts(data: bytes) -> None:
    _LOOP.run_until_complete(_twins().run(Random(data)))


SHORTCUT_TARGETS: tuple[tuple[str, Callable[[bytes], object], tuple[type[Exception], ...]], ...] = (
    ("dscomm_shortcuts", run_shortcuts, ()),
)
