"""A synchronous directory client for commands and the console."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from mqis.client.directory import DirectoryClient
from mqis.client.servers import LogonRefusedError, NoServerError, ServerAddress
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.directory.lookup_query import SortKey
from mqis.protocol.directory.object_sources import Record, as_guid
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.protocol.directory.restrictions import Restriction
from mqis.protocol.directory.types.catalogue import COMPUTED, ROWS
from mqis.protocol.errors import DirectoryError
from mqis.protocol.sessions import SessionsReply, SessionsRequest, SessionVerb
from mqis.protocol.undeletion.messages import UndeleteReply, UndeleteRequest
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import PropertyRestriction, SortColumn
from mqis.wire.mqds.serverlist import ServerList
from mqis.wire.propvariant import PropVariant, VarType

T = TypeVar("T")

_EQ = 4


#: The seconds that a call may take.
TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class RemoteUser:
    """The user to log on as, and the security options."""

    name: str
    domain: str = ""
    auth_type: AuthType = AuthType.SPNEGO
    level: AuthLevel = AuthLevel.PRIVACY
    #: Require the server to sign its answers.
    verify: bool = True

    def __str__(self) -> str:
        return f"{self.domain}\\{self.name}" if self.domain else self.name


async def connect(
    servers: Sequence[ServerAddress],
    user: RemoteUser | None,
    secret: str | None,
    timeout_s: float = TIMEOUT_S,
) -> DirectoryClient:
    """Connects to the first server that answers; a refused logon is not tried elsewhere."""
    errors: list[tuple[ServerAddress, Exception]] = []
    for server in servers:
        try:
            return await _connect_to(server, user, secret, timeout_s)
        except NoServerError as error:
            errors += ((server, each) for each in error.errors)
    raise NoServerError.of(errors)


async def _connect_to(
    server: ServerAddress, user: RemoteUser | None, secret: str | None, timeout_s: float
) -> DirectoryClient:
    if user is None:
        return await DirectoryClient.connect([server], timeout_s=timeout_s)
    # Loads pyspnego and Kerberos, a third of the time that an anonymous command takes.
    from mqis.runtime.authentication.initiator import PyspnegoInitiator  # noqa: PLC0415

    initiator = PyspnegoInitiator(LogonCredentials(user.name, user.domain, secret))
    credentials = Credentials(initiator, user.auth_type, user.level, server.host)
    gss = initiator if user.verify else None
    try:
        return await DirectoryClient.connect(
            [server], credentials=credentials, gss=gss, timeout_s=timeout_s
        )
    except LogonRefusedError as error:
        cause = error.__cause__
        assert isinstance(cause, Exception)
        raise LogonRefusedError.by(server, cause, user) from error
    except DirectoryError as error:
        if error.hresult != HResult.MQDS_E_CANT_INIT_SERVER_AUTH:
            raise
        raise LogonRefusedError(
            f"{server}: {error}; --no-verify connects without signatures"
        ) from error


class Runner(Protocol):
    """A runner of the client's coroutines: ``asyncio.Runner``, or another thread's event loop."""

    def run(self, coro: Coroutine[Any, Any, T], /) -> T: ...


class Remote:
    """A ``sources.Source`` over the wire, with changes."""

    def __init__(self, runner: Runner, client: DirectoryClient) -> None:
        self._runner = runner
        self._client = client
        self._names: dict[tuple[ObjectType, Guid], str | None] = {}

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    # --- names ------------------------------------------------------------------------------------

    def name_of(self, object_type: ObjectType, id: Guid) -> str | None:  # noqa: A002
        """The name of an object; None if this user may not read it either."""
        key = object_type, id
        if key not in self._names:
            own = NAME_PROPERTY[object_type]
            try:
                found = self._run(self._client.get(object_type, [own], guid=id))
                self._names[key] = str(found[own].value)
            except DirectoryError:
                self._names[key] = None
        return self._names[key]

    def id_of(self, object_type: ObjectType, name: str) -> Guid | None:
        own = IDENTIFIER_PROPERTY[object_type]
        try:
            found = self._run(self._client.get(object_type, [own], path=name))[own].value
        except DirectoryError as error:
            if error.hresult == HResult.MQ_ERROR_ACCESS_DENIED:
                raise
            return None
        return found if isinstance(found, Guid) else None

    # --- reads ------------------------------------------------------------------------------------

    def get(self, object_type: ObjectType, name: str, chosen: Sequence[PropId]) -> Record:
        own = _identifying_properties(object_type)
        target = _target(name)
        found = self._run(self._client.get(object_type, own, **target))
        guid = found[own[0]].value
        assert isinstance(guid, Guid)
        values: dict[PropId, PropVariant | None]
        if chosen:
            values = self._chosen(object_type, chosen, guid)
        else:
            values = {p: v for p, v in self._all(object_type, guid).items() if v is not None}
        return _record(object_type, found, values)

    def _chosen(
        self, object_type: ObjectType, chosen: Sequence[PropId], guid: Guid
    ) -> dict[PropId, PropVariant | None]:
        """Reads all in one call; if some have no value, for which servers fail it, one by one."""
        try:
            return {**self._run(self._client.get(object_type, chosen, guid=guid))}
        except DirectoryError as error:
            if error.hresult != HResult.E_ADS_PROPERTY_NOT_FOUND or len(chosen) == 1:
                raise
        values: dict[PropId, PropVariant | None] = {}
        for propid in chosen:
            try:
                values |= self._run(self._client.get(object_type, [propid], guid=guid))
            except DirectoryError as error:
                if error.hresult != HResult.E_ADS_PROPERTY_NOT_FOUND:
                    raise
                values[propid] = None
        return values

    def _all(self, object_type: ObjectType, guid: Guid) -> dict[PropId, PropVariant | None]:
        """Reads all stored, readable properties by a lookup: it tells which have no value."""
        own = IDENTIFIER_PROPERTY[object_type]
        columns = [
            row.id
            for propid, row in ROWS.items()
            if row.object_type is object_type
            and row.readable
            and (row.also_stored or propid not in COMPUTED)
        ]
        only = PropertyRestriction(_EQ, own, prop(own, guid))
        rows = self._run(self._rows(columns, [only], []))
        return dict(zip(columns, map(_or_none, rows[0]), strict=True)) if rows else {}

    def lookup(
        self,
        object_type: ObjectType,
        columns: Sequence[PropId],
        restrictions: Sequence[Restriction],
        sort: Sequence[SortKey],
    ) -> list[Record]:
        wanted = [*_identifying_properties(object_type), *columns]
        conditions = [PropertyRestriction(r.relation, r.propid, r.constant) for r in restrictions]
        keys = [SortColumn(key.propid, key.order) for key in sort]
        rows = self._run(self._rows(wanted, conditions, keys))
        found = [dict(zip(wanted, row, strict=True)) for row in rows]
        return [_record(object_type, row, {p: _or_none(row[p]) for p in columns}) for row in found]

    async def _rows(
        self,
        columns: Sequence[PropId],
        restrictions: Sequence[PropertyRestriction],
        sort: Sequence[SortColumn],
    ) -> list[tuple[PropVariant, ...]]:
        return [row async for row in self._client.lookup(columns, restrictions, sort)]

    def security(self, object_type: ObjectType, name: str, information: int) -> bytes:
        return self._run(self._client.get_security(object_type, information, **_target(name)))

    def servers(self) -> list[ServerList]:
        return self._run(self._client.known_servers())

    # --- changes ----------------------------------------------------------------------------------

    def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: dict[int, PropVariant],
        descriptor: bytes | None,
    ) -> Guid | None:
        return self._run(self._client.create(object_type, path, properties, descriptor))

    def set(self, object_type: ObjectType, name: str, properties: dict[int, PropVariant]) -> None:
        self._run(self._client.set(object_type, properties, **_target(name)))

    def delete(self, object_type: ObjectType, name: str) -> None:
        self._run(self._client.delete(object_type, **_target(name)))

    def set_security(
        self, object_type: ObjectType, name: str, information: int, data: bytes
    ) -> None:
        self._run(self._client.set_security(object_type, information, data, **_target(name)))

    def undelete(self, request: UndeleteRequest) -> UndeleteReply:
        return self._run(self._client.undelete(request))

    def sessions(self) -> SessionsReply:
        """Who is connected to the server, for its administrators."""
        return self._run(self._client.sessions(SessionsRequest(SessionVerb.LIST)))

    def end_session(self, id: int) -> SessionsReply:  # noqa: A002
        """Ends a session of the server; returns those that are left."""
        return self._run(self._client.sessions(SessionsRequest(SessionVerb.END, id)))


def _target(name: str) -> dict[str, Any]:
    guid = as_guid(name)
    return {"path": name} if guid is None else {"guid": guid}


def _identifying_properties(object_type: ObjectType) -> list[PropId]:
    """The properties that identify an object: its identifier, and its name if it has one."""
    name = NAME_PROPERTY.get(object_type)
    return [IDENTIFIER_PROPERTY[object_type], *([] if name is None else [name])]


def _record(
    object_type: ObjectType,
    found: dict[PropId, PropVariant],
    values: dict[PropId, PropVariant | None],
) -> Record:
    own = _identifying_properties(object_type)
    guid = found[own[0]].value
    assert isinstance(guid, Guid)
    path = str(found[own[1]].value) if len(own) > 1 else None
    return Record(object_type, guid, path, values)


def _or_none(value: PropVariant) -> PropVariant | None:
    return None if value.vt in (VarType.NULL, VarType.EMPTY) else value
