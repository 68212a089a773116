"""The directory as an object with methods.

    async with await DirectoryClient.connect([ServerAddress("dir1")]) as directory:
        await directory.create(ObjectType.QUEUE, "c14\\\\orders", {PropId.Q_LABEL: text("Orders")})
        async for queue in directory.queues(label="Orders"):
            print(queue.path)

Whatever the server refuses is a ``DirectoryError`` with its HRESULT; a reply whose signature is
wrong is a ``SignatureError``, and nothing of it is returned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mqis.client.authentication import Callbacks, MachineSigner, ServerProof, new_context
from mqis.client.servers import NoServerError, ServerAddress, find_port
from mqis.protocol.authentication import Initiator
from mqis.protocol.directory import signature
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, NAME_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import RpcConnectionError
from mqis.runtime.rpc.client import Credentials, RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult, is_failure
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query import (
    MAX_ENTRIES,
    ColumnSet,
    PropertyRestriction,
    RestrictionSet,
    SortColumn,
    SortSet,
)
from mqis.wire.mqds.serverlist import ServerList
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.rpc.operation import InterfaceDescription, Operation

Q = TypeVar("Q")
R = TypeVar("R")

#: Room for a signature: a wrapped digest is far smaller with every provider there is.
SIGNATURE_SIZE = 1024
#: Room for the tokens of a handshake.
TOKEN_SIZE = 65_536
_EQ = 4
_NULL = PropVariant(VarType.NULL, None)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a lookup: the columns that were asked for."""

    object_type: ObjectType
    values: Mapping[PropId, PropVariant]

    @property
    def path(self) -> str | None:
        propid = NAME_PROPERTY.get(self.object_type)
        return None if propid is None else str(self.value(propid))

    @property
    def id(self) -> Guid | None:
        found = self.value(IDENTIFIER_PROPERTY[self.object_type])
        return found if isinstance(found, Guid) else None

    def value(self, propid: PropId) -> Value:
        found = self.values.get(propid)
        return None if found is None else found.value


class DirectoryClient:
    """A connection to one directory server of those that are known."""

    def __init__(
        self, rpc: RpcClient, server: ServerAddress, callbacks: Callbacks, timeout_s: float
    ) -> None:
        self.server = server
        self._rpc = rpc
        self._callbacks = callbacks
        self._timeout_s = timeout_s
        self._proof = ServerProof()
        self._auth = ContextHandle.NULL
        self._next_context = 1

    @classmethod
    async def connect(
        cls,
        servers: Sequence[ServerAddress],
        *,
        credentials: Credentials | None = None,
        gss: Initiator | None = None,
        signer: MachineSigner | None = None,
        timeout_s: float = 10.0,
    ) -> DirectoryClient:
        """Connect to the first server that answers, in the order given (3.2.3).

        ``credentials`` protect the connection; ``gss`` lets the server prove itself, so that its
        signatures mean something.
        """
        refusals = []
        for server in servers:
            callbacks = Callbacks(signer=signer)
            try:
                port = await find_port(server, dscomm.SYNTAX, timeout_s)
                rpc = await RpcClient.connect(
                    server.host,
                    port,
                    [dscomm.SYNTAX],
                    credentials=credentials,
                    callbacks=callbacks,
                    timeout_s=timeout_s,
                )
            except RpcConnectionError as error:
                refusals.append(f"{server}: {error}")
                continue
            client = cls(rpc, server, callbacks, timeout_s)
            try:
                await client._validate(gss)
            except BaseException:
                await rpc.close()
                raise
            return client
        raise NoServerError("no directory server answers; " + "; ".join(refusals))

    async def __aenter__(self) -> DirectoryClient:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the auth handle back, then the connection."""
        if self._auth and self._rpc.usable:
            request = dscomm.HandleGiven(self._auth)
            self._auth = ContextHandle.NULL
            with suppress(RpcConnectionError):  # gone already, and its handles with it
                await self._call(dscomm.CLOSE_SERVER_HANDLE, request)
        await self._rpc.close()

    @property
    def usable(self) -> bool:
        return self._rpc.usable

    async def _validate(self, gss: Initiator | None) -> None:
        """S_DSValidateServer: without ``gss`` an empty context, whose signatures are zeros."""
        number = self._new_context()
        token = b""
        if gss is not None:
            context = new_context(gss, self.server.host)
            self._callbacks.pending[number] = context
            token = context.step(None) or b""
            self._proof.context = context
        request = dscomm.ValidateServer(Guid.NULL, 0, number, TOKEN_SIZE, token)
        try:
            got = await self._call(dscomm.VALIDATE_SERVER, request)
        finally:
            self._callbacks.pending.pop(number, None)
        _check(got.result, "the server did not authenticate itself")
        self._auth = got.handle

    def _new_context(self) -> int:
        number = self._next_context
        self._next_context += 1
        return number

    async def _call(
        self,
        operation: Operation[Q, R],
        request: Q,
        given: Mapping[str, int] | None = None,
        interface: InterfaceDescription = dscomm.DSCOMM,
    ) -> R:
        return await invoke(
            self._rpc, interface, operation, request, given=given or {}, timeout_s=self._timeout_s
        )

    # --- changes ----------------------------------------------------------------------------------

    async def create(
        self,
        object_type: ObjectType,
        path: str | None,
        properties: Mapping[int, PropVariant],
        descriptor: bytes | None = None,
    ) -> Guid | None:
        """Create an object; its identifier, if the server tells it."""
        ids, values = _arrays(properties)
        request = dscomm.CreateObject(object_type, path, descriptor, ids, values, Guid.NULL)
        got = await self._call(dscomm.CREATE_OBJECT, request)
        _check(got.result, f"cannot create {object_type.label} {path or ''}")
        return got.guid or None

    async def delete(
        self, object_type: ObjectType, path: str | None = None, guid: Guid | None = None
    ) -> None:
        if path is not None:
            by_path = dscomm.ByPath(object_type, path)
            got = await self._call(dscomm.DELETE_OBJECT, by_path)
        else:
            by_guid = dscomm.ByGuid(object_type, guid or Guid.NULL)
            got = await self._call(dscomm.DELETE_OBJECT_GUID, by_guid)
        _check(got.result, f"cannot delete {object_type.label} {path or guid}")

    async def set(
        self,
        object_type: ObjectType,
        properties: Mapping[int, PropVariant],
        path: str | None = None,
        guid: Guid | None = None,
    ) -> None:
        """Change properties of an object."""
        ids, values = _arrays(properties)
        if path is not None:
            by_path = dscomm.SetProps(object_type, path, ids, values)
            got = await self._call(dscomm.SET_PROPS, by_path)
        else:
            by_guid = dscomm.SetPropsGuid(object_type, guid or Guid.NULL, ids, values)
            got = await self._call(dscomm.SET_PROPS_GUID, by_guid)
        _check(got.result, f"cannot change {object_type.label} {path or guid}")

    async def set_machine_properties(
        self, path: str, properties: Mapping[int, PropVariant]
    ) -> None:
        """S_DSQMSetMachineProperties, which a server may ask to be signed."""
        ids, values = _arrays(properties)
        number = self._new_context()
        self._callbacks.challenged[number] = lambda challenge: signature.machine_properties_digest(
            challenge, ids, values
        )
        request = dscomm.SetMachineProperties(path, ids, values, number)
        try:
            got = await self._call(dscomm.QM_SET_MACHINE_PROPERTIES, request)
        finally:
            del self._callbacks.challenged[number]
        _check(got.result, f"cannot change machine {path}")

    async def set_security(
        self,
        object_type: ObjectType,
        information: int,
        data: bytes,
        path: str | None = None,
        guid: Guid | None = None,
    ) -> None:
        """Replace parts of a descriptor, or a public key."""
        if path is not None:
            by_path = dscomm.SetSecurity(object_type, path, information, data)
            got = await self._call(dscomm.SET_OBJECT_SECURITY, by_path)
        else:
            by_guid = dscomm.SetSecurityGuid(object_type, guid or Guid.NULL, information, data)
            got = await self._call(dscomm.SET_OBJECT_SECURITY_GUID, by_guid)
        _check(got.result, f"cannot change the permissions of {object_type.label} {path or guid}")

    # --- reads ------------------------------------------------------------------------------------

    async def get(
        self,
        object_type: ObjectType,
        ids: Sequence[PropId],
        path: str | None = None,
        guid: Guid | None = None,
    ) -> dict[PropId, PropVariant]:
        """Properties of one object."""
        blank = (_NULL,) * len(ids)
        given = {"cp": len(ids)}
        if path is not None:
            request = dscomm.GetProps(
                object_type, path, tuple(ids), blank, self._auth, SIGNATURE_SIZE
            )
            got = await self._call(dscomm.GET_PROPS, request, given)
        else:
            asked = dscomm.GetPropsGuid(
                object_type, guid, tuple(ids), blank, self._auth, SIGNATURE_SIZE
            )
            got = await self._call(dscomm.GET_PROPS_GUID, asked, given)
        _check(got.result, f"cannot read {object_type.label} {path or guid}")
        self._proof.check(signature.properties_digest(ids, got.values), got.signature)
        return dict(zip(ids, got.values, strict=True))

    async def get_security(
        self,
        object_type: ObjectType,
        information: int,
        path: str | None = None,
        guid: Guid | None = None,
    ) -> bytes:
        """Parts of a descriptor, or a public key; asked twice if the first buffer is too small."""
        length = 1024
        while True:
            got = await self._security(object_type, information, length, path, guid)
            too_small = got.result == HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
            if too_small and length < got.length_needed <= dscomm.MAX_BUFFER:
                length = got.length_needed
                continue
            _check(got.result, f"cannot read the permissions of {object_type.label} {path or guid}")
            self._proof.check(signature.security_digest(got.descriptor), got.signature)
            return got.descriptor[: got.length_needed]

    async def _security(
        self,
        object_type: ObjectType,
        information: int,
        length: int,
        path: str | None,
        guid: Guid | None,
    ) -> dscomm.SecurityGot:
        given = {"length": length}
        if path is not None:
            request = dscomm.GetSecurity(
                object_type, path, information, length, self._auth, SIGNATURE_SIZE
            )
            return await self._call(dscomm.GET_OBJECT_SECURITY, request, given)
        asked = dscomm.GetSecurityGuid(
            object_type, guid or Guid.NULL, information, length, self._auth, SIGNATURE_SIZE
        )
        return await self._call(dscomm.GET_OBJECT_SECURITY_GUID, asked, given)

    async def lookup(
        self,
        columns: Sequence[PropId],
        restrictions: Sequence[PropertyRestriction] = (),
        sort: Sequence[SortColumn] = (),
    ) -> AsyncIterator[tuple[PropVariant, ...]]:
        """The columns of every object that meets all restrictions, row by row."""
        request = dscomm.LookupBegin(
            None,
            RestrictionSet(tuple(restrictions)) if restrictions else None,
            ColumnSet(tuple(columns)),
            SortSet(tuple(sort)) if sort else None,
            self._auth,
        )
        begun = await self._call(dscomm.LOOKUP_BEGIN, request)
        _check(begun.result, "the lookup was refused")
        try:
            while page := await self._next(begun.handle, columns):
                for row in page:
                    yield row
        finally:
            if self._rpc.usable:
                await self._call(dscomm.LOOKUP_END, dscomm.HandleGiven(begun.handle))

    async def _next(
        self, handle: ContextHandle, columns: Sequence[PropId]
    ) -> list[tuple[PropVariant, ...]]:
        width = len(columns)
        size = MAX_ENTRIES // width * width
        request = dscomm.LookupNext(handle, size, self._auth, SIGNATURE_SIZE)
        got = await self._call(dscomm.LOOKUP_NEXT, request, {"size": size})
        _check(got.result, "the lookup failed")
        if len(got.values) % width:
            raise DirectoryError(HResult.MQ_ERROR_DS_ERROR, "the server sent half an object")
        rows = [got.values[at : at + width] for at in range(0, len(got.values), width)]
        ids = tuple(columns) * len(rows)
        self._proof.check(signature.properties_digest(ids, got.values), got.signature)
        return rows

    async def find(
        self, object_type: ObjectType, columns: Sequence[PropId] = (), **equal: Value
    ) -> AsyncIterator[Entry]:
        """Objects of a type whose properties equal what is given, by their short names."""
        name = NAME_PROPERTY.get(object_type)
        wanted = [IDENTIFIER_PROPERTY[object_type], *([] if name is None else [name])]
        wanted += [propid for propid in columns if propid not in wanted]
        restrictions = [_restriction(object_type, key, value) for key, value in equal.items()]
        async for row in self.lookup(wanted, restrictions):
            yield Entry(object_type, dict(zip(wanted, row, strict=True)))

    def queues(self, columns: Sequence[PropId] = (), **equal: Value) -> AsyncIterator[Entry]:
        return self.find(ObjectType.QUEUE, columns, **equal)

    def machines(self, columns: Sequence[PropId] = (), **equal: Value) -> AsyncIterator[Entry]:
        return self.find(ObjectType.MACHINE, columns, **equal)

    def sites(self, columns: Sequence[PropId] = (), **equal: Value) -> AsyncIterator[Entry]:
        return self.find(ObjectType.SITE, columns, **equal)

    def links(self, columns: Sequence[PropId] = (), **equal: Value) -> AsyncIterator[Entry]:
        return self.find(ObjectType.ROUTINGLINK, columns, **equal)

    # --- servers and sites ------------------------------------------------------------------------

    async def known_servers(self) -> list[ServerList]:
        """The directory servers of every site (S_DSCreateServersCache)."""
        found: list[ServerList] = []
        while True:
            pointer = dscomm.StringPointer(None)
            request = dscomm.CreateServersCache(len(found), pointer, self._auth, SIGNATURE_SIZE)
            got = await self._call(dscomm.CREATE_SERVERS_CACHE, request)
            if got.result == HResult.MQDS_E_NO_MORE_DATA:
                return found
            _check(got.result, "cannot list the servers")
            text = (got.servers.text if got.servers else None) or ""
            self._proof.check(signature.servers_digest(len(found), text), got.signature)
            found.append(ServerList.parse(text))

    async def server_port(self) -> int:
        """S_DSGetServerPort: 0 if the server does not tell."""
        return (await self._call(dscomm.GET_SERVER_PORT, dscomm.GetServerPort(1))).port

    async def computer_sites(self, machine: str) -> tuple[Guid, ...]:
        """S_DSGetComputerSites (dscomm2)."""
        await self._need_dscomm2()
        request = dscomm2.GetComputerSites(machine, self._auth, SIGNATURE_SIZE)
        got = await self._call(dscomm2.GET_COMPUTER_SITES, request, interface=dscomm2.DSCOMM2)
        _check(got.result, f"cannot tell the sites of {machine}")
        sites = got.sites or ()
        digest = signature.blob_digest(b"".join(site.raw for site in sites))
        self._proof.check(digest, got.signature)
        return sites

    async def _need_dscomm2(self) -> None:
        if not self._rpc.offers(dscomm2.SYNTAX):
            await self._rpc.add_interface(dscomm2.SYNTAX)


def _arrays(
    properties: Mapping[int, PropVariant],
) -> tuple[tuple[int, ...], tuple[PropVariant, ...]]:
    return tuple(properties), tuple(properties.values())


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
    return PropertyRestriction(_EQ, propid, PropVariant(PROPERTIES[propid].vt, value))
