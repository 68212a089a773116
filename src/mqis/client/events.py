"""The directory events (MS-MQDS 3.2.6): each makes a call and returns a status and elements.

    events = ClientEvents(connection)
    created = await events.create_directory_object(Queue(pathname="c14\\\\orders", label="Orders"))
    found = await events.read_directory(Queue, [equal("Pathname", "c14\\\\orders")])
    if found.ok: print(found.value.label)

An event never raises because of a server or the network; it returns a status, and the cause as
``Outcome.error``. Attributes may be named in the specification's or in Python's spelling.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mqis.client import calls, requests
from mqis.client.elements import DirectoryElement
from mqis.client.requests import ElementColumns, Filter, RequestRefusedError, SortOrder
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.client.servers import ServerAddress
from mqis.client.session import DirectoryConnection, ServerSession
from mqis.protocol.directory.locate import Target
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.protocol.errors import DirectoryError, ProtocolError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.machine_address import AddressList, AddressType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import PropertyRestriction
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant

T = TypeVar("T")
E = TypeVar("E", bound=DirectoryElement)

log = logging.getLogger(__name__)

_SUCCESS = DirectoryOperationResult.SUCCESS
_GENERIC = DirectoryOperationResult.GENERIC_ERROR
_OFFLINE = DirectoryOperationResult.DIRECTORY_NOT_CONNECTED
_NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
_END = DirectoryOperationResult.END_OF_DATA


class ClientEvents:
    """The events of a client, over a connection that finds a server when needed."""

    def __init__(self, connection: DirectoryConnection) -> None:
        self._connection = connection
        self.iterators = IteratorCollection()

    async def create_directory_object(
        self, element: DirectoryElement, attributes: Iterable[str] | None = None
    ) -> Outcome[Guid | None]:
        """Creates an object (3.2.6.1). The value is its identifier, None if not known."""

        async def steps() -> Outcome[Guid | None]:
            arguments = requests.creation(element, attributes)
            session = await self._session()
            got = await calls.create_object(
                session, arguments.target, arguments.properties, arguments.descriptor
            )
            _expect_ok(got.result, f"cannot create {_name(arguments.target)}")
            return Outcome(_SUCCESS, got.guid or await self._read_back(session, arguments.target))

        return await _as_outcome(steps)

    async def _read_back(self, session: ServerSession, target: Target) -> Guid | None:
        """Reads a new object's identifier, which the server did not return (MQDS-3.2.6.1.1-08)."""
        if target.path is None or target.object_type not in NAME_PROPERTY:
            return None
        try:
            got = await calls.get_props(session, target, [IDENTIFIER_PROPERTY[target.object_type]])
        except MqisError:  # the object exists all the same
            return None
        found = got.values[0].value if got.result == HResult.MQ_OK else None
        return found if isinstance(found, Guid) else None

    async def delete_directory_object(self, element: DirectoryElement) -> Outcome[None]:
        """Deletes an object (3.2.6.2)."""

        async def steps() -> Outcome[None]:
            target = requests.deletion(element)
            got = await calls.delete_object(await self._session(), target)
            _expect_ok(got.result, f"cannot delete {_name(target)}")
            return Outcome(_SUCCESS)

        return await _as_outcome(steps)

    async def write_directory(
        self, element: DirectoryElement, attributes: Iterable[str] | None = None
    ) -> Outcome[None]:
        """Writes the populated attributes: those listed, or those that servers accept (3.2.6.7)."""

        async def steps() -> Outcome[None]:
            target, properties = requests.writing(element, attributes)
            if properties:  # else there is nothing to change, and no call for that
                got = await calls.set_props(await self._session(), target, properties)
                _expect_ok(got.result, f"cannot change {_name(target)}")
            return Outcome(_SUCCESS)

        return await _as_outcome(steps)

    # --- reading ----------------------------------------------------------------------------------

    async def read_directory(
        self,
        kind: type[E],
        filters: Sequence[Filter] | None,
        attributes: Sequence[str] | None = None,
    ) -> Outcome[E]:
        """Reads one object (3.2.6.3): by name or identifier in one call, else by a lookup.

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

        return await _as_outcome(steps)

    async def _read_first(
        self, kind: type[E], filters: Sequence[Filter] | None, attributes: Sequence[str] | None
    ) -> Outcome[E]:
        begun = await self.read_directory_begin(kind, filters, attributes)
        if begun.value is None:
            return Outcome(begun.status, error=begun.error)
        found = await self.read_directory_next(begun.value)
        # The specification does not release the server's handle when Next fails.
        ended = await self.read_directory_end(begun.value)
        if not found.ok:
            return Outcome(found.status, error=found.error)
        if not ended.ok:
            return Outcome(ended.status, error=ended.error)
        assert isinstance(found.value, kind)
        return Outcome(_SUCCESS, found.value)

    async def read_directory_begin(
        self,
        kind: type[DirectoryElement],
        filters: Sequence[Filter] | None = None,
        attributes: Sequence[str] | None = None,
        sort_order: Sequence[SortOrder] | None = None,
    ) -> Outcome[ContextHandle]:
        """Begins a lookup (3.2.6.4). The value is the query handle for the two events below.

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
            return await _as_outcome(steps)
        finally:
            if iterator.handle is None:
                self.iterators.remove(iterator)

    async def read_directory_next(self, handle: ContextHandle) -> Outcome[DirectoryElement]:
        """Reads the next object (3.2.6.5); returns EndOfData after the last, at every call."""

        async def steps() -> Outcome[DirectoryElement]:
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

        return await _as_outcome(steps)

    async def read_directory_end(self, handle: ContextHandle) -> Outcome[None]:
        """Ends a lookup (3.2.6.6). The iterator is removed, whatever the server answers."""

        async def steps() -> Outcome[None]:
            iterator = self._find(handle)
            self.iterators.remove(iterator)
            assert iterator.session is not None
            got = await calls.lookup_end(iterator.session, handle)
            _expect_ok(got.result, "the lookup could not be ended")
            return Outcome(_SUCCESS)

        return await _as_outcome(steps)

    def _find(self, handle: ContextHandle) -> ReadIterator:
        iterator = self.iterators.find(handle)
        if iterator is None:
            raise RequestRefusedError("there is no query with this handle")
        return iterator

    # --- servers ----------------------------------------------------------------------------------

    async def initialize_known_servers(self) -> Outcome[tuple[ServerAddress, ...]]:
        """Replaces the list of known servers by those of the client's own site (3.2.6.8).

        If anything fails before the lookup has begun, the old list stays.
        """

        async def steps() -> Outcome[tuple[ServerAddress, ...]]:
            known = self._connection.known
            if known.site is None:
                raise RequestRefusedError("the client does not know its site")
            session = await self._session()
            found = await _servers_of(session, known.site)
            known.replace(found)
            return Outcome(_SUCCESS, known.servers)

        outcome = await _as_outcome(steps)
        if not outcome.ok:
            log.error("the known directory servers were not refreshed: %s", outcome.error)
        return outcome

    async def _session(self) -> ServerSession:
        try:
            return await self._connection.session()
        except RpcConnectionError:
            raise
        except MqisError as error:  # connected, but the server is not authenticated
            raise RpcConnectionError(f"initialisation failed: {error}") from error


_SERVER_COLUMNS = (PropId.QM_PATHNAME_DNS, PropId.QM_PATHNAME, PropId.QM_ADDRESS)


async def _servers_of(session: ServerSession, site: Guid) -> list[ServerAddress]:
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
                return found  # 3.2.6.8 stops at a failure; the end is a success without values
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


async def _as_outcome(steps: Callable[[], Awaitable[Outcome[T]]]) -> Outcome[T]:
    """Converts errors to a status."""
    try:
        return await steps()
    except RequestRefusedError as error:
        return Outcome(error.status, error=error)
    except RpcConnectionError as error:
        return Outcome(_OFFLINE, error=error)
    except (MqisError, ValueError) as error:
        return Outcome(_GENERIC, error=error)


def _expect_ok(result: int, detail: str) -> None:
    """Raises ``DirectoryError`` unless the result is MQ_OK, even if it only informs."""
    if result != HResult.MQ_OK:
        raise DirectoryError(result, detail)


def _name(target: Target) -> str:
    return f"{target.object_type.label} {target.path or target.guid or ''}".rstrip()


# --- The state of reads that take several events (MS-MQDS 3.2.1.5, 3.2.1.6) -----------------------


@dataclass(slots=True, eq=False)
class ReadIterator:
    """ReadDirectoryIteratorState; ``columns`` is known after the type-specific steps."""

    element_type: type[DirectoryElement]
    #: The server's handle; None until it has answered.
    handle: ContextHandle | None = None
    columns: ElementColumns[DirectoryElement] | None = None
    #: The session in which the handle is valid.
    session: ServerSession | None = None


class IteratorCollection:
    """ReadDirectoryIteratorStateCollection: all open iterators."""

    def __init__(self) -> None:
        self._iterators: list[ReadIterator] = []

    def __iter__(self) -> Iterator[ReadIterator]:
        return iter(self._iterators)

    def __len__(self) -> int:
        return len(self._iterators)

    def add(self, iterator: ReadIterator) -> None:
        self._iterators.append(iterator)

    def remove(self, iterator: ReadIterator) -> None:
        self._iterators.remove(iterator)

    def find(self, handle: ContextHandle) -> ReadIterator | None:
        return next((it for it in self._iterators if it.handle == handle), None)
