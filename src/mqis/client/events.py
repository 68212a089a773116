"""The directory events (MS-MQDS 3.2.6): elements in, one call, a status and elements out.

    events = DirectoryEvents(connection)
    created = await events.create_directory_object(Queue(pathname="c14\\\\orders", label="Orders"))
    found = await events.read_directory(Queue, [equal("Pathname", "c14\\\\orders")])
    if found.ok: print(found.value.label)

An event never raises for what a server or the network does: the status tells. ``Outcome.error``
keeps what lies behind it. Attributes may be named as the specification or as Python spells them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from mqis.client import calls, requests
from mqis.client.elements import DirectoryObject
from mqis.client.iterators import IteratorCollection, ReadIterator
from mqis.client.requests import Filter, Refusal, SortOrder
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.client.servers import ServerAddress
from mqis.client.session import Connection, Session
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.address import AddressList, AddressType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query import PropertyRestriction
from mqis.wire.mqds.values import prop
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant

T = TypeVar("T")
E = TypeVar("E", bound=DirectoryObject)

log = logging.getLogger(__name__)

_SUCCESS = DirectoryOperationResult.SUCCESS
_GENERIC = DirectoryOperationResult.GENERIC_ERROR
_OFFLINE = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
_NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
_END = DirectoryOperationResult.END_OF_DATA


class DirectoryEvents:
    """The events of a client, over a connection that finds a server when it needs one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.iterators = IteratorCollection()

    async def create_directory_object(
        self, element: DirectoryObject, attributes: Iterable[str] | None = None
    ) -> Outcome[Guid | None]:
        """3.2.6.1. The value is the new identifier; None if the server does not tell it."""

        async def steps() -> Outcome[Guid | None]:
            arguments = requests.creation(element, attributes)
            session = await self._session()
            got = await calls.create_object(
                session, arguments.target, arguments.properties, arguments.descriptor
            )
            _expect_ok(got.result, f"cannot create {_name(arguments.target)}")
            return Outcome(_SUCCESS, got.guid or await self._read_back(session, arguments.target))

        return await _carried_out(steps)

    async def _read_back(self, session: Session, target: Target) -> Guid | None:
        """The identifier of a new object that the server did not tell (MQDS-3.2.6.1.1-08)."""
        if target.path is None or target.object_type not in NAME_PROPERTY:
            return None
        try:
            got = await calls.get_props(session, target, [IDENTIFIER_PROPERTY[target.object_type]])
        except MqisError:  # the object is there all the same
            return None
        found = got.values[0].value if got.result == HResult.MQ_OK else None
        return found if isinstance(found, Guid) else None

    async def delete_directory_object(self, element: DirectoryObject) -> Outcome[None]:
        """3.2.6.2."""

        async def steps() -> Outcome[None]:
            target = requests.deletion(element)
            got = await calls.delete_object(await self._session(), target)
            _expect_ok(got.result, f"cannot delete {_name(target)}")
            return Outcome(_SUCCESS)

        return await _carried_out(steps)

    async def write_directory(
        self, element: DirectoryObject, attributes: Iterable[str] | None = None
    ) -> Outcome[None]:
        """3.2.6.7: what is populated, as far as it is listed or a server takes it."""

        async def steps() -> Outcome[None]:
            target, properties = requests.writing(element, attributes)
            if properties:  # else there is nothing to change, and no call that says so
                got = await calls.set_props(await self._session(), target, properties)
                _expect_ok(got.result, f"cannot change {_name(target)}")
            return Outcome(_SUCCESS)

        return await _carried_out(steps)

    # --- reading ----------------------------------------------------------------------------------

    async def read_directory(
        self,
        kind: type[E],
        filters: Sequence[Filter] | None,
        attributes: Sequence[str] | None = None,
    ) -> Outcome[E]:
        """3.2.6.3: one object; by its name or identifier in one call, else the first of a lookup.

        A lookup that finds nothing ends with EndOfData.
        """

        async def steps() -> Outcome[E]:
            target = requests.direct_target(kind, filters or ())
            if target is None:
                return await self._read_first(kind, filters, attributes)
            columns = requests.columns(kind, attributes)
            got = await calls.get_props(await self._session(), target, columns.propids)
            if got.result == HResult.MQDS_OBJECT_NOT_FOUND:
                error = DirectoryError(got.result, f"no {_name(target)}")
                return Outcome(_NOT_FOUND, error=error)
            _expect_ok(got.result, f"cannot read {_name(target)}")
            return Outcome(_SUCCESS, columns.element(got.values))

        return await _carried_out(steps)

    async def _read_first(
        self, kind: type[E], filters: Sequence[Filter] | None, attributes: Sequence[str] | None
    ) -> Outcome[E]:
        begun = await self.read_directory_begin(kind, filters, attributes)
        if begun.value is None:
            return Outcome(begun.status, error=begun.error)
        found = await self.read_directory_next(begun.value)
        # The text forgets the server's handle when Next fails.
        ended = await self.read_directory_end(begun.value)
        if not found.ok:
            return Outcome(found.status, error=found.error)
        if not ended.ok:
            return Outcome(ended.status, error=ended.error)
        assert isinstance(found.value, kind)
        return Outcome(_SUCCESS, found.value)

    async def read_directory_begin(
        self,
        kind: type[DirectoryObject],
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        sort_order: Sequence[SortOrder] | None = None,
    ) -> Outcome[ContextHandle]:
        """3.2.6.4. The value is the query handle of the two events below.

        ``sort_order`` has an entry for each attribute, those of ``default_attributes`` if no list
        is given.
        """
        iterator = ReadIterator(kind)
        self.iterators.add(iterator)

        async def steps() -> Outcome[ContextHandle]:
            lookup = requests.lookup(kind, filters, attributes, sort_order)
            iterator.columns = lookup.columns
            iterator.session = await self._session()
            got = await calls.lookup_begin(
                iterator.session, lookup.columns.propids, lookup.restrictions, lookup.sort
            )
            _expect_ok(got.result, "the lookup was refused")
            if not got.handle:
                raise ProtocolError("the server gave no handle for the lookup")
            iterator.handle = got.handle
            return Outcome(_SUCCESS, got.handle)

        try:
            return await _carried_out(steps)
        finally:
            if iterator.handle is None:
                self.iterators.remove(iterator)

    async def read_directory_next(self, handle: ContextHandle) -> Outcome[DirectoryObject]:
        """3.2.6.5: the next object; EndOfData behind the last, as often as it is asked."""

        async def steps() -> Outcome[DirectoryObject]:
            iterator = self._find(handle)
            columns, session = iterator.columns, iterator.session
            assert columns is not None
            assert session is not None
            width = len(columns.propids)
            got = await calls.lookup_next(session, handle, columns.propids, width)
            _expect_ok(got.result, "the lookup failed")
            if not got.values:
                return Outcome(_END)
            if len(got.values) != width:
                raise ProtocolError(f"the server sent {len(got.values)} of {width} values")
            return Outcome(_SUCCESS, columns.element(got.values))

        return await _carried_out(steps)

    async def read_directory_end(self, handle: ContextHandle) -> Outcome[None]:
        """3.2.6.6. The iterator is gone, whatever the server says."""

        async def steps() -> Outcome[None]:
            iterator = self._find(handle)
            self.iterators.remove(iterator)
            assert iterator.session is not None
            got = await calls.lookup_end(iterator.session, handle)
            _expect_ok(got.result, "the lookup did not end")
            return Outcome(_SUCCESS)

        return await _carried_out(steps)

    def _find(self, handle: ContextHandle) -> ReadIterator:
        iterator = self.iterators.find(handle)
        if iterator is None:
            raise Refusal("no such query")
        return iterator

    # --- servers ----------------------------------------------------------------------------------

    async def initialize_known_servers(self) -> Outcome[tuple[ServerAddress, ...]]:
        """3.2.6.8: replace the list of known servers by those of the client's own site.

        If anything fails before the lookup has begun, the old list stays.
        """

        async def steps() -> Outcome[tuple[ServerAddress, ...]]:
            known = self._connection.known
            if known.site is None:
                raise Refusal("the client does not know its site")
            session = await self._session()
            found = await _servers_of(session, known.site)
            known.replace(found)
            return Outcome(_SUCCESS, known.servers)

        outcome = await _carried_out(steps)
        if not outcome.ok:
            log.error("the known directory servers were not refreshed: %s", outcome.error)
        return outcome

    async def _session(self) -> Session:
        try:
            return await self._connection.session()
        except RpcConnectionError:
            raise
        except MqisError as error:  # connected, but the server is not proven
            raise RpcConnectionError(f"initialisation failed: {error}") from error


_SERVER_COLUMNS = (PropId.QM_PATHNAME_DNS, PropId.QM_PATHNAME, PropId.QM_ADDRESS)


async def _servers_of(session: Session, site: Guid) -> list[ServerAddress]:
    restrictions = (
        PropertyRestriction(
            requests.Operator.GREATER_THAN, PropId.QM_SERVICE, prop(PropId.QM_SERVICE, 1)
        ),
        PropertyRestriction(
            requests.Operator.EQUALS, PropId.QM_SITE_ID, prop(PropId.QM_SITE_ID, site)
        ),
    )
    begun = await calls.lookup_begin(session, _SERVER_COLUMNS, restrictions)
    _expect_ok(begun.result, "the lookup of servers was refused")
    if not begun.handle:
        raise ProtocolError("the server gave no handle for the lookup")
    found: list[ServerAddress] = []
    width = len(_SERVER_COLUMNS)
    try:
        while True:
            got = await calls.lookup_next(session, begun.handle, _SERVER_COLUMNS, width)
            if got.result != HResult.MQ_OK or len(got.values) != width:
                return found  # the text stops at a failure; the end is a success without values
            server = _server(*got.values)
            if server is not None:
                found.append(server)
    finally:
        await calls.abandon(session, begun.handle)


def _server(dns_name: PropVariant, name: PropVariant, address: PropVariant) -> ServerAddress | None:
    host = next((v.value for v in (dns_name, name) if isinstance(v.value, str) and v.value), None)
    if host is None:
        return None
    try:
        listed = AddressList.from_bytes(address.value if isinstance(address.value, bytes) else b"")
    except WireError:
        listed = AddressList(())
    ip = [a.address for a in listed.addresses if a.address_type == AddressType.IP]
    return ServerAddress(host, addresses=tuple(".".join(map(str, octets)) for octets in ip))


async def _carried_out(steps: Callable[[], Awaitable[Outcome[T]]]) -> Outcome[T]:
    """Fold what goes wrong into a status."""
    try:
        return await steps()
    except Refusal as error:
        return Outcome(error.status, error=error)
    except RpcConnectionError as error:
        return Outcome(_OFFLINE, error=error)
    except (MqisError, ValueError) as error:
        return Outcome(_GENERIC, error=error)


def _expect_ok(result: int, detail: str) -> None:
    """Anything but MQ_OK is a failure here, even a code that only informs."""
    if result != HResult.MQ_OK:
        raise DirectoryError(result, detail)


def _name(target: Target) -> str:
    return f"{target.object_type.label} {target.path or target.guid or ''}".rstrip()
