"""A domain controller for tests: ``ScriptedDirectory`` with the manners of Active Directory.

It gives identifiers and times, knows entries by ``<GUID=...>``, shows names with identifiers (the
extended-DN control), keeps descriptors for those who ask for them, and refuses what Active
Directory refuses: an entry without a parent (32), one that has others below it (66), a name that
no entry has (19), a chosen identifier (53), no change at all (53), a value to delete that is not
there (16), a value to add that is (20), a second value where there can be one (19).

    async with ScriptedDomain.of("DC=corp,DC=example") as server:
        server.add_site("Berlin")
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqis.protocol.activedirectory.schema import DISPLAY_NAME, needed_names
from mqis.testing.ldap import ScriptedAnswer, ScriptedDirectory, entry, name_of
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, ModifyKind, RenameEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.controls import (
    EXTENDED_DN,
    PAGED_RESULTS,
    TREE_DELETE,
    LdapControl,
    find_control,
)
from mqis.wire.ldap.messages import LdapOperation
from mqis.wire.ldap.names import ExtendedName
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import (
    AddResponse,
    DeleteResponse,
    LdapResult,
    ModifyResponse,
    RenameResponse,
    SearchEntry,
)
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE, Sid

_Change = AddEntry | ModifyEntry | DeleteEntry | RenameEntry
#: Attributes whose values are names of entries.
LINKS = frozenset(
    {
        "msmqsite1",
        "msmqsite2",
        "msmqsitegates",
        "msmqoutroutingservers",
        "msmqinroutingservers",
        "serverreference",
    }
)
#: Attributes that have one value at most, of those to which values are added.
SINGLE_VALUED = frozenset({"msmqsigncertificates"})
_SECURITY = "ntsecuritydescriptor"
#: Full control for everybody: what an administrator's account sees.
OPEN = SecurityDescriptor(
    owner=Sid.parse("S-1-5-32-544"), dacl=Acl((allow(EVERYONE, 0x000F_01FF),))
).to_bytes()


@dataclass
class ScriptedDomain(ScriptedDirectory):
    """One domain that is a forest; ``root`` is its name."""

    root: str = "DC=corp,DC=example"
    #: The names of its classes and attributes.
    schema: tuple[str, ...] = needed_names()
    _numbers: int = 0

    @classmethod
    def of(cls, root: str = "DC=corp,DC=example") -> ScriptedDomain:
        """An empty forest: its contexts and the containers that every one has."""
        server = cls(root=root)
        configuration = f"CN=Configuration,{root}"
        contexts = {
            "defaultNamingContext": root.encode(),
            "rootDomainNamingContext": root.encode(),
            "configurationNamingContext": configuration.encode(),
            "schemaNamingContext": f"CN=Schema,{configuration}".encode(),
            "dnsHostName": b"dc1.corp.example",
            "highestCommittedUSN": b"1",
        }
        server.entries.append(entry("", objectClass=b"top", **contexts))
        for name, kind in (
            (root, b"domainDNS"),
            (f"CN=Computers,{root}", b"container"),
            (f"CN=Users,{root}", b"container"),
            (configuration, b"configuration"),
            (f"CN=Sites,{configuration}", b"sitesContainer"),
            (f"CN=Services,{configuration}", b"container"),
        ):
            server.put(name, objectClass=kind)
        server.put(
            f"CN=MsmqServices,CN=Services,{configuration}",
            objectClass=b"mSMQEnterpriseSettings",
            mSMQVersion=b"200",
        )
        return server

    @property
    def configuration(self) -> str:
        return f"CN=Configuration,{self.root}"

    def put(self, name: str, **attributes: bytes | Iterable[bytes]) -> Guid:
        """Adds an entry as the server itself does, and returns its identifier."""
        made = self._made(entry(name, **attributes))
        self.entries.append(made)
        return Guid(made.values("objectGUID")[0])

    def add_site(self, name: str, **attributes: bytes | Iterable[bytes]) -> Guid:
        return self.put(
            f"CN={name},CN=Sites,{self.configuration}", objectClass=b"site", **attributes
        )

    def add_computer(self, name: str, **attributes: bytes | Iterable[bytes]) -> str:
        """Adds a computer account and returns its distinguished name."""
        number = len(self.entries).to_bytes(4, "little")
        sid = Sid.parse("S-1-5-21-1-2-3-0").to_bytes()[:-4] + number
        found = f"CN={name},CN=Computers,{self.root}"
        self.put(
            found,
            objectClass=(b"top", b"user", b"computer"),
            sAMAccountName=f"{name}$".encode(),
            dNSHostName=f"{name}.corp.example".lower().encode(),
            objectSid=sid,
            **attributes,
        )
        return found

    def add_user(self, name: str, sid: bytes, **attributes: bytes | Iterable[bytes]) -> Guid:
        return self.put(
            f"CN={name},CN=Users,{self.root}",
            objectClass=(b"top", b"person", b"user"),
            objectCategory=b"person",
            sAMAccountName=name.encode(),
            objectSid=sid,
            **attributes,
        )

    def by_guid(self, guid: Guid) -> SearchEntry | None:
        return next((e for e in self.entries if e.values("objectGUID") == (guid.raw,)), None)

    # --- reading ----------------------------------------------------------------------------------

    def _search(self, request: SearchRequest, controls: tuple[LdapControl, ...]) -> ScriptedAnswer:
        if request.base == f"CN=Schema,{self.configuration}":
            names = ((f"CN={name},{request.base}", name.encode()) for name in self.schema)
            shown = [entry(name, **{DISPLAY_NAME: value}) for name, value in names]
            return self._paged(shown, find_control(controls, PAGED_RESULTS))
        if not request.base and int(request.scope) != 0:
            request = _with_base(request, self.root)
        elif request.base.startswith("<GUID="):
            found = self._resolved(request.base)
            request = _with_base(request, found or f"CN=missing,{self.root}")
        answer = super()._search(request, controls)
        if not any(control.oid == EXTENDED_DN for control in controls):
            return answer
        return [self._extended(e) if isinstance(e, SearchEntry) else e for e in answer]

    def _resolved(self, name: str) -> str | None:
        """The distinguished name of an entry that is called by its identifier."""
        if not name.startswith("<GUID="):
            return name
        guid = ExtendedName.parse(name).guid
        found = None if guid is None else self.by_guid(guid)
        return None if found is None else found.name

    def _shown(self, found: SearchEntry, attributes: tuple[str, ...]) -> SearchEntry:
        shown = super()._shown(found, attributes)
        if _SECURITY in map(str.lower, attributes):
            return shown
        return SearchEntry(
            shown.name, tuple(r for r in shown.attributes if r[0].lower() != _SECURITY)
        )

    def _extended(self, found: SearchEntry) -> SearchEntry:
        rows = tuple(
            (name, tuple(self._with_guid(v) for v in values) if name.lower() in LINKS else values)
            for name, values in found.attributes
        )
        return SearchEntry(self._with_guid(found.name.encode()).decode(), rows)

    def _with_guid(self, name: bytes) -> bytes:
        target = self._entry(name.decode())
        if target is None or not target.values("objectGUID"):
            return name
        return f"<GUID={Guid(target.values('objectGUID')[0])}>;".encode() + name

    def _entry(self, name: str) -> SearchEntry | None:
        wanted = name_of(name).key
        return next((e for e in self.entries if name_of(e.name).key == wanted), None)

    # --- changing ---------------------------------------------------------------------------------

    def _change(self, request: _Change, controls: tuple[LdapControl, ...]) -> LdapOperation:
        name = self._resolved(request.name)
        code = ResultCode.NO_SUCH_OBJECT if name is None else self._refusal(request, controls)
        if name is None or code is not None:
            return _refused(request, code or ResultCode.NO_SUCH_OBJECT)
        if isinstance(request, AddEntry):
            self.entries.append(self._made(SearchEntry(request.name, request.attributes)))
            return AddResponse()
        if isinstance(request, DeleteEntry):
            self.entries = [e for e in self.entries if not name_of(e.name).is_below(name_of(name))]
            return DeleteResponse()
        return super()._change(_renamed(request, name), controls)

    def _refusal(self, request: _Change, controls: tuple[LdapControl, ...]) -> ResultCode | None:
        match request:
            case AddEntry():
                return self._refused_add(request)
            case ModifyEntry(_, changes):
                if not changes:
                    return ResultCode.UNWILLING_TO_PERFORM
                given = ((c.attribute, c.values) for c in changes if c.values)
                return self._bad_values(given) or self._other_values(request)
            case DeleteEntry(name):
                tree = any(control.oid == TREE_DELETE for control in controls)
                place = name_of(self._resolved(name) or name)
                below = sum(name_of(e.name).is_below(place) for e in self.entries)
                if not below:
                    return ResultCode.NO_SUCH_OBJECT
                return ResultCode.NOT_ALLOWED_ON_NON_LEAF if below > 1 and not tree else None
        return None

    def _refused_add(self, request: AddEntry) -> ResultCode | None:
        if self._entry(request.name) is not None:
            return ResultCode.ENTRY_ALREADY_EXISTS
        if self._entry(str(name_of(request.name).parent)) is None:
            return ResultCode.NO_SUCH_OBJECT
        if request.values("objectGUID"):
            return ResultCode.UNWILLING_TO_PERFORM
        return self._bad_values(request.attributes)

    def _bad_values(self, rows: Iterable[tuple[str, tuple[bytes, ...]]]) -> ResultCode | None:
        for attribute, values in rows:
            if not values or b"" in values:
                return ResultCode.INVALID_ATTRIBUTE_SYNTAX
            if len(set(values)) < len(values):
                return ResultCode.ATTRIBUTE_OR_VALUE_EXISTS
            if attribute.lower() in LINKS and any(self._entry(v.decode()) is None for v in values):
                return ResultCode.CONSTRAINT_VIOLATION
        return None

    def _other_values(self, request: ModifyEntry) -> ResultCode | None:
        found = self._entry(self._resolved(request.name) or request.name)
        held: dict[str, set[bytes]] = {}
        for change in request.changes if found is not None else ():
            assert found is not None
            key, given = change.attribute.lower(), set(change.values)
            values = held.setdefault(key, set(found.values(key)))
            match change.kind:
                case ModifyKind.DELETE:
                    if not given <= values:
                        return ResultCode.NO_SUCH_ATTRIBUTE
                    values -= given or set(values)
                case ModifyKind.ADD:
                    if given & values:
                        return ResultCode.ATTRIBUTE_OR_VALUE_EXISTS
                    if values and key in SINGLE_VALUED:
                        return ResultCode.CONSTRAINT_VIOLATION
                    values |= given
                case ModifyKind.REPLACE:
                    held[key] = given
        return None

    def _made(self, new: SearchEntry) -> SearchEntry:
        """The entry with what the server itself adds."""
        self._numbers += 1
        given = {name.lower() for name, _ in new.attributes}
        name = name_of(new.name)
        above = self._entry(str(name.parent))
        parent = above.values("objectGUID") if above is not None else ()
        rows = {
            "objectGUID": (Guid(b"AD" + self._numbers.to_bytes(14, "big")).raw,),
            "cn": (name.leaf.encode(),),
            "whenCreated": (b"20260102030405.0Z",),
            "whenChanged": (b"20260102030405.0Z",),
            "nTSecurityDescriptor": (OPEN,),
            "distinguishedName": (new.name.encode(),),
            "parentGUID": parent,
        }
        made = tuple(row for row in rows.items() if row[0].lower() not in given and row[1])
        return SearchEntry(new.name, new.attributes + made)


def _refused(request: _Change, code: ResultCode) -> LdapOperation:
    result = LdapResult(code)
    match request:
        case AddEntry():
            return AddResponse(result)
        case ModifyEntry():
            return ModifyResponse(result)
        case DeleteEntry():
            return DeleteResponse(result)
    return RenameResponse(result)


def _with_base(request: SearchRequest, base: str) -> SearchRequest:
    return SearchRequest(
        base, request.scope, request.filter, request.attributes, request.size_limit
    )


def _renamed(request: _Change, name: str) -> _Change:
    match request:
        case ModifyEntry(_, changes, parts):
            return ModifyEntry(name, changes, parts)
        case RenameEntry(_, leaf, delete, parent):
            return RenameEntry(name, leaf, delete, parent)
    raise WireError(f"{type(request).__name__} is not expected here", 0)
