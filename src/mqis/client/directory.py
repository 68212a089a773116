"""The directory client.

    logon = LogonCredentials("alice", "CORP", password)
    async with await DirectoryClient.connect([ServerAddress("dir1")], logon=logon) as directory:
        await directory.add(Queue(pathname="c14\\\\orders", label="Orders"))
        async for queue in directory.search(Queue, label="Orders", order_by=["pathname"]):
            print(queue.pathname, queue.quota)

Elements (``read``, ``search``, ``add``, ``write``, ``remove``) have named and typed attributes.
The lower level has properties by identifier (``get``, ``find``, ``create``, ``set``, ``delete``).
A refusal by the server is a ``DirectoryError`` with its HRESULT; a reply with a wrong signature is
a ``SignatureError``, and nothing of it is returned. ``events`` has the same operations as MS-MQDS
3.2.6 describes them, with a status instead of exceptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from mqis.client import calls, calls2, requests
from mqis.client.administration import sessions, undelete
from mqis.client.authentication import MachineSigner, SignatureError
from mqis.client.elements import DirectoryElement, Enterprise
from mqis.client.events import ClientEvents
from mqis.client.known import KnownServers
from mqis.client.requests import Filter, RequestRefusedError, SortOrder, equal
from mqis.client.servers import ServerAddress
from mqis.client.session import DirectoryConnection, ServerSession, SessionSettings
from mqis.protocol.authentication import AuthLevel, AuthType, Initiator
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.sessions import SessionsReply, SessionsRequest
from mqis.protocol.undeletion.messages import UndeleteReply, UndeleteRequest
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, is_failure
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import MAX_ENTRIES, PropertyRestriction, SortColumn
from mqis.wire.mqds.serverlist import ServerList, ServerSpec, parse_server_specs
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, Value

E = TypeVar("E", bound=DirectoryElement)

_EQ = 4
#: The usual size of a descriptor; if it is larger, the server returns the size needed.
_FIRST_BUFFER = 1024


@dataclass(frozen=True, slots=True)
class LookupEntry:
    """An object found by a lookup, with the requested columns."""

    object_type: ObjectType
    values: Mapping[PropId, PropVariant]

    @property
    def path(self) -> str | None:
        """The path or name of the object; None for types without one."""
        propid = NAME_PROPERTY.get(self.object_type)
        return None if propid is None else str(self.value(propid))

    @property
    def id(self) -> Guid | None:
        """The identifier of the object."""
        found = self.value(IDENTIFIER_PROPERTY[self.object_type])
        return found if isinstance(found, Guid) else None

    def value(self, propid: PropId) -> Value:
        """The value of a column; None if the object has none."""
        found = self.values.get(propid)
        return None if found is None else found.value


class DirectoryClient:
    """A client that knows several servers and talks to one of them, the current server.

    If that server fails, calls in progress fail too and the next call reconnects, to another server
    if necessary.
    """

    def __init__(self, connection: DirectoryConnection) -> None:
        self._connection = connection
        self.events = ClientEvents(connection)

    @classmethod
    async def connect(
        cls,
        servers: Sequence[ServerAddress] | KnownServers,
        *,
        logon: LogonCredentials | None = None,
        credentials: Credentials | Callable[[str], Credentials] | None = None,
        gss: Initiator | None = None,
        signer: MachineSigner | None = None,
        answer_challenges: bool = True,
        ask_port: bool = False,
        timeout_s: float = 15.0,
    ) -> DirectoryClient:
        """Connects to the current server, or to the first of the others that answers (3.2.3).

        A server that refuses the credentials is the last one that is asked: ``LogonRefusedError``.
        With a ``logon``, the caller and the server authenticate each other (Kerberos or NTLM),
        every call is encrypted and every answer is verified; that is what most programs want.
        Without it the caller is anonymous. Instead of it, ``credentials`` choose how the connection
        is protected, and ``gss`` authenticates the server, so that its signatures can be verified.
        ``signer`` answers the obsolete challenges of S_DSQM* calls.
        """
        if logon is not None:
            if credentials is not None or gss is not None:
                raise ValueError("a logon sets credentials and gss; give it or them")
            # Loads pyspnego and Kerberos, a third of the time that an anonymous command takes.
            from mqis.runtime.authentication.initiator import (  # noqa: PLC0415
                PyspnegoInitiator,
            )

            gss = PyspnegoInitiator(logon)
            credentials = partial(Credentials, gss, AuthType.SPNEGO, AuthLevel.PRIVACY)
        known = servers if isinstance(servers, KnownServers) else KnownServers.of(servers)
        settings = SessionSettings(credentials, gss, signer, answer_challenges, ask_port, timeout_s)
        connection = DirectoryConnection(known, settings)
        await connection.session()
        return cls(connection)

    async def __aenter__(self) -> DirectoryClient:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Releases the auth handle, then closes the connection."""
        await self._connection.close()

    @property
    def server(self) -> ServerAddress:
        """The current server."""
        return self._connection.known.current

    @property
    def usable(self) -> bool:
        """True if there is a connection now; otherwise the next call makes one."""
        return self._connection.usable

    async def undelete(self, request: UndeleteRequest) -> UndeleteReply:
        """Plans or carries out an undelete, for an administrator of a server of mqis."""
        return await undelete(await self._session(), request)

    async def sessions(self, request: SessionsRequest) -> SessionsReply:
        """Lists or ends sessions, for an administrator of a server of mqis."""
        return await sessions(await self._session(), request)

    async def _session(self) -> ServerSession:
        return await self._connection.session()

    # --- elements ---------------------------------------------------------------------------------

    async def read(
        self, kind: type[E], attributes: Sequence[str] | None = None, **equals: object
    ) -> E:
        """Reads one element by equal attributes: ``read(Queue, pathname="m\\\\q")``.

        Only the enterprise, of which there is one, is read without them: others raise
        ``RequestRefusedError``, because any object would be an answer. ``search`` yields all.
        """
        if not equals and kind is not Enterprise:
            raise RequestRefusedError(
                f"reading one {requests.object_type_of(kind).label} takes an attribute to find it "
                f"by, such as {requests.key_of(kind)}; search() yields all of them"
            )
        filters = [equal(name, value) for name, value in equals.items()]
        return (await self.events.read_directory(kind, filters, attributes)).unwrap()

    async def search(
        self,
        kind: type[E],
        *filters: Filter,
        attributes: Sequence[str] | None = None,
        order_by: Sequence[str] = (),
        **equals: object,
    ) -> AsyncIterator[E]:
        """Yields elements that match all filters; ``order_by=["label", "-quota"]``: - descends."""
        wanted = [*filters, *(equal(name, value) for name, value in equals.items())]
        names = list(requests.default_attributes(kind) if attributes is None else attributes)
        orders = _orders(names, order_by)
        plan = requests.lookup(kind, wanted, names, orders)
        async for row in self.lookup(plan.columns.propids, plan.restrictions, plan.sort):
            yield plan.columns.element(row)

    async def add(
        self, element: DirectoryElement, attributes: Iterable[str] | None = None
    ) -> Guid | None:
        """Creates the object; returns its identifier if the server tells it."""
        return (await self.events.create_directory_object(element, attributes)).unwrap()

    async def write(
        self, element: DirectoryElement, attributes: Iterable[str] | None = None
    ) -> None:
        """Changes the populated attributes, or only those named."""
        (await self.events.write_directory(element, attributes)).unwrap()

    async def remove(self, element: DirectoryElement) -> None:
        """Deletes the object that the element's identifier or name tells."""
        (await self.events.delete_directory_object(element)).unwrap()

    # --- changes ----------------------------------------------------------------------------------

    async def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: Mapping[int, PropVariant],
        descriptor: bytes | None = None,
    ) -> Guid | None:
        """Creates an object; returns its identifier if the server tells it."""
        target = Target(object_type, path)
        got = await calls.create_object(await self._session(), target, properties, descriptor)
        _check(got.result, f"cannot create {object_type.label} {path or ''}")
        return got.guid or None

    async def delete(
        self, object_type: ObjectType, path: str | None = None, guid: Guid | None = None
    ) -> None:
        """Deletes an object by its path or its identifier."""
        target = Target(object_type, path, guid)
        got = await calls.delete_object(await self._session(), target)
        _check(got.result, f"cannot delete {object_type.label} {path or guid}")

    async def delete_with_notice(self, object_type: ObjectType, path: str) -> int:
        """Deletes a queue or machine between the notifications of dscomm2 (3.4.4.1, 4.4).

        Returns the first notification's code: 0x400E03EB if an old site controller owns the object.
        """
        if (object_type is ObjectType.QUEUE) is not ("\\" in path):
            raise ValueError(f"{path!r} is not the path of a {object_type.label}")
        session = await self._session()
        begun = await calls2.begin_delete_notification(session, path)
        _check(begun.result, f"cannot announce the deletion of {object_type.label} {path}")
        try:
            got = await calls.delete_object(session, Target(object_type, path))
            _check(got.result, f"cannot delete {object_type.label} {path}")
            if begun.handle:
                confirmed = await calls2.notify_delete(session, begun.handle)
                _check(
                    confirmed.result, f"cannot confirm the deletion of {object_type.label} {path}"
                )
        finally:
            if begun.handle and session.usable:
                await calls2.end_delete_notification(session, begun.handle)
        return begun.result

    async def set(
        self,
        object_type: ObjectType,
        properties: Mapping[int, PropVariant],
        path: str | None = None,
        guid: Guid | None = None,
    ) -> None:
        """Changes properties of an object."""
        target = Target(object_type, path, guid)
        got = await calls.set_props(await self._session(), target, properties)
        _check(got.result, f"cannot change {object_type.label} {path or guid}")

    async def set_machine_properties(
        self, path: str, properties: Mapping[int, PropVariant]
    ) -> None:
        """S_DSQMSetMachineProperties, for a queue manager's own properties; others use ``set``."""
        got = await calls.set_machine_properties(await self._session(), path, properties)
        _check(got.result, f"cannot change machine {path}")

    async def set_security(
        self,
        object_type: ObjectType,
        information: int,
        data: bytes,
        path: str | None = None,
        guid: Guid | None = None,
    ) -> None:
        """Replaces parts of a descriptor, or a public key."""
        target = Target(object_type, path, guid)
        got = await calls.set_security(await self._session(), target, information, data)
        _check(got.result, f"cannot change the permissions of {object_type.label} {path or guid}")

    # --- reads ------------------------------------------------------------------------------------

    async def get(
        self,
        object_type: ObjectType,
        ids: Sequence[PropId],
        path: str | None = None,
        guid: Guid | None = None,
    ) -> dict[PropId, PropVariant]:
        """Reads properties of one object."""
        target = Target(object_type, path, guid)
        got = await calls.get_props(await self._session(), target, ids)
        _check(got.result, f"cannot read {object_type.label} {path or guid}")
        return dict(zip(ids, got.values, strict=True))

    async def get_extended(
        self,
        object_type: ObjectType,
        propid: PropId,
        path: str | None = None,
        guid: Guid | None = None,
    ) -> PropVariant:
        """Reads a property that only dscomm2 returns: a descriptor or key list (3.3.4.2)."""
        target = Target(object_type, path, guid)
        got = await calls2.get_props_ex(await self._session(), target, propid)
        _check(got.result, f"cannot read {object_type.label} {path or guid}")
        return got.values[0]

    async def get_security(
        self,
        object_type: ObjectType,
        information: int,
        path: str | None = None,
        guid: Guid | None = None,
    ) -> bytes:
        """Reads parts of a descriptor, or a public key; calls twice if the buffer was too small."""
        session, target = await self._session(), Target(object_type, path, guid)
        got = await calls.get_security(session, target, information, _FIRST_BUFFER)
        if _needs_larger_buffer(got, _FIRST_BUFFER):
            got = await calls.get_security(session, target, information, got.length_needed)
        _check(got.result, f"cannot read the permissions of {object_type.label} {path or guid}")
        return _without_padding(got)

    async def get_machine_security(
        self, object_type: ObjectType, information: int, guid: Guid
    ) -> bytes:
        """Reads the same for a machine; the server may challenge it (S_DSQMGetObjectSecurity)."""
        session, target = await self._session(), Target(object_type, None, guid)
        got = await calls.get_machine_security(session, target, information, _FIRST_BUFFER)
        if _needs_larger_buffer(got, _FIRST_BUFFER):
            got = await calls.get_machine_security(session, target, information, got.length_needed)
        _check(got.result, f"cannot read the permissions of {object_type.label} {guid}")
        return _without_padding(got)

    async def lookup(
        self,
        columns: Sequence[PropId],
        restrictions: Sequence[PropertyRestriction] = (),
        sort: Sequence[SortColumn] = (),
    ) -> AsyncIterator[tuple[PropVariant, ...]]:
        """Yields the columns of every object that matches all restrictions, row by row."""
        if not 1 <= len(columns) <= MAX_ENTRIES:
            raise ValueError(f"a lookup has 1 to {MAX_ENTRIES} columns, not {len(columns)}")
        session = await self._session()
        begun = await calls.lookup_begin(session, columns, restrictions, sort)
        _check(begun.result, "the lookup was refused")
        try:
            while page := await _page(session, begun.handle, columns):
                for row in page:
                    yield row
        finally:
            await calls.abandon(session, begun.handle)

    async def find(
        self, object_type: ObjectType, columns: Sequence[PropId] = (), **equals: Value
    ) -> AsyncIterator[LookupEntry]:
        """Yields objects of a type with equal properties, which are given by their short names."""
        name = NAME_PROPERTY.get(object_type)
        wanted = [IDENTIFIER_PROPERTY[object_type], *([] if name is None else [name])]
        wanted += [propid for propid in columns if propid not in wanted]
        restrictions = [_restriction(object_type, key, value) for key, value in equals.items()]
        async for row in self.lookup(wanted, restrictions):
            yield LookupEntry(object_type, dict(zip(wanted, row, strict=True)))

    def queues(self, columns: Sequence[PropId] = (), **equals: Value) -> AsyncIterator[LookupEntry]:
        """Yields queues, as ``find``: ``queues([PropId.Q_QUOTA], label="Orders")``."""
        return self.find(ObjectType.QUEUE, columns, **equals)

    def machines(
        self, columns: Sequence[PropId] = (), **equals: Value
    ) -> AsyncIterator[LookupEntry]:
        """Yields machines, as ``find``."""
        return self.find(ObjectType.MACHINE, columns, **equals)

    def sites(self, columns: Sequence[PropId] = (), **equals: Value) -> AsyncIterator[LookupEntry]:
        """Yields sites, as ``find``."""
        return self.find(ObjectType.SITE, columns, **equals)

    def links(self, columns: Sequence[PropId] = (), **equals: Value) -> AsyncIterator[LookupEntry]:
        """Yields routing links, as ``find``."""
        return self.find(ObjectType.ROUTINGLINK, columns, **equals)

    # --- servers and sites ------------------------------------------------------------------------

    async def known_servers(self) -> list[ServerList]:
        """The directory servers of every site (S_DSCreateServersCache)."""
        session = await self._session()
        found: list[ServerList] = []
        while True:
            got = await calls.create_servers_cache(session, len(found))
            if got.result == HResult.MQDS_E_NO_MORE_DATA:
                return found
            _check(got.result, "cannot list the servers")
            found.append(ServerList.parse(calls.servers_text(got)))

    async def server_port(self) -> int:
        """S_DSGetServerPort: 0 if the server does not say."""
        return await calls.get_server_port(await self._session())

    async def computer_sites(self, machine: str) -> tuple[Guid, ...]:
        """S_DSGetComputerSites (dscomm2)."""
        got = await calls2.get_computer_sites(await self._session(), machine)
        _check(got.result, f"cannot get the sites of {machine}")
        return got.sites or ()

    async def is_global_catalog(self) -> bool:
        """S_DSIsServerGC (dscomm2)."""
        return await calls2.is_server_gc(await self._session())

    async def global_catalogs(self, domain: str) -> tuple[ServerSpec, ...]:
        """S_DSGetGCListInDomain (dscomm2)."""
        got = await calls2.get_gc_list_in_domain(await self._session(), domain)
        _check(got.result, f"cannot list the global catalogs of {domain}")
        return parse_server_specs(got.servers) if got.servers else ()


async def _page(
    session: ServerSession, handle: ContextHandle, columns: Sequence[PropId]
) -> list[tuple[PropVariant, ...]]:
    """The next rows, as many as fit in one call; none after the last."""
    width = len(columns)
    got = await calls.lookup_next(session, handle, columns, MAX_ENTRIES // width * width)
    _check(got.result, "the lookup failed")
    if len(got.values) % width:
        raise DirectoryError(HResult.MQ_ERROR_DS_ERROR, "the server sent an incomplete object")
    return [got.values[at : at + width] for at in range(0, len(got.values), width)]


def _needs_larger_buffer(got: dscomm.SecurityGot, length: int) -> bool:
    too_small = got.result == HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
    return too_small and length < got.length_needed <= dscomm.MAX_BUFFER


def _without_padding(got: dscomm.SecurityGot) -> bytes:
    """The buffer without its padding. The length is not signed, but the removed bytes must be 0."""
    if any(got.descriptor[got.length_needed :]):
        raise SignatureError("the length of the answer differs from the signed one")
    return got.descriptor[: got.length_needed]


def _orders(names: list[str], order_by: Sequence[str]) -> list[SortOrder]:
    """A sort order for each name; attributes to sort by are added to ``names``."""
    wanted = {
        name.removeprefix("-"): SortOrder(len(order_by) - at, not name.startswith("-"))
        for at, name in enumerate(order_by)
    }
    names += [name for name in wanted if name not in names]
    return [wanted.get(name, SortOrder()) for name in names]


def _check(result: int, detail: str) -> None:
    if is_failure(result):
        raise DirectoryError(result, detail)


_PREFIXES = {
    ObjectType.QUEUE: "Q_",
    ObjectType.MACHINE: "QM_",
    ObjectType.SITE: "S_",
    ObjectType.CN: "CN_",
    ObjectType.ENTERPRISE: "E_",
    ObjectType.USER: "U_",
    ObjectType.ROUTINGLINK: "L_",
}


def _restriction(object_type: ObjectType, name: str, value: Any) -> PropertyRestriction:
    try:
        propid = PropId[_PREFIXES[object_type] + name.upper()]
    except KeyError:
        raise ValueError(f"a {object_type.label} has no property {name!r}") from None
    return PropertyRestriction(_EQ, propid, prop(propid, value))
