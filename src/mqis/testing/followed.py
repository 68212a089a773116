"""A domain controller for tests of mirrors: it numbers changes and keeps tombstones.

    async with FollowedDomain.of() as server:
        server.change(DeleteEntry(name))

``may_dirsync`` and ``shows_deleted`` say what the account may; ``restore`` makes it the copy of a
backup. Notifications are refused: a mirror has to ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mqis.testing.activedirectory import LINKS, ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer, name_of
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import DeleteEntry, EntryChange, RenameEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.controls import (
    DIR_SYNC,
    NOTIFICATION,
    SHOW_DELETED,
    DirSync,
    LdapControl,
    find_control,
)
from mqis.wire.ldap.messages import LdapOperation
from mqis.wire.ldap.names import escape_value
from mqis.wire.ldap.requests import SearchRequest
from mqis.wire.ldap.responses import LdapResult, SearchDone, SearchEntry

_LEFT = ("objectclass", "objectguid")


@dataclass
class FollowedDomain(ScriptedDomain):
    """``usn`` is the number of the last change."""

    usn: int = 1000
    invocation: Guid = field(default_factory=lambda: Guid(b"I" * 16))
    may_dirsync: bool = False
    shows_deleted: bool = True
    #: Called before each search, to change something between two of them.
    before_search: list[object] = field(default_factory=list)

    @classmethod
    def of(cls, root: str = "DC=corp,DC=example") -> FollowedDomain:
        server = super().of(root)
        assert isinstance(server, cls)
        service = f"CN=NTDS Settings,CN=DC1,CN=Sites,{server.configuration}"
        server.put(f"CN=DC1,CN=Sites,{server.configuration}", objectClass=b"server")
        server.put(service, objectClass=b"nTDSDSA")
        server.put(f"CN=Deleted Objects,{root}", objectClass=b"container", isDeleted=b"TRUE")
        server._replace("", dsServiceName=service.encode())
        return server

    def put(self, name: str, **attributes: bytes | Iterable[bytes]) -> Guid:
        guid = super().put(name, **attributes)
        self._touch(guid)
        return guid

    def change(self, request: EntryChange | RenameEntry) -> None:
        """Makes a change as an administrator; ``ValueError`` if the server refuses it."""
        answer = self._change(request, request.controls)
        code = answer.result.code  # type: ignore[union-attr]
        if code != ResultCode.SUCCESS:
            raise ValueError(f"{request.name}: {code}")

    def restore(self, usn: int) -> None:
        """Makes the server the copy of a backup: another invocation, and its numbers go back."""
        self.invocation = Guid(bytes([self.invocation.raw[0] + 1]) * 16)
        self.usn = usn

    # --- numbers ----------------------------------------------------------------------------------

    def _touch(self, guid: Guid) -> None:
        self.usn += 1
        found = self.by_guid(guid)
        if found is not None:
            self._replace(found.name, uSNChanged=b"%d" % self.usn)

    def _replace(self, name: str, **given: bytes) -> None:
        for at, found in enumerate(self.entries):
            if name_of(found.name).key == name_of(name).key:
                rows = {**dict(found.attributes), **{key: (v,) for key, v in given.items()}}
                self.entries[at] = SearchEntry(found.name, tuple(rows.items()))

    def _change(
        self, request: EntryChange | RenameEntry, controls: tuple[LdapControl, ...]
    ) -> LdapOperation:
        before = {e.name: e for e in self.entries}
        answer = super()._change(request, controls)
        if answer.result.code != ResultCode.SUCCESS:  # type: ignore[union-attr]
            return answer
        if isinstance(request, DeleteEntry):
            kept = {e.name for e in self.entries}
            for name in sorted(before.keys() - kept, key=len, reverse=True):
                self._bury(before[name])
        elif isinstance(request, RenameEntry):
            self._follow_rename(before)
        else:
            found = self._resolved(request.name)
            touched = None if found is None else self._entry(found)
            if touched is not None:
                self._touch(Guid(touched.values("objectGUID")[0]))
        return answer

    def _follow_rename(self, before: dict[str, SearchEntry]) -> None:
        """Entries below a renamed one, and values that name one of them; their numbers stay."""
        (old,) = before.keys() - {e.name for e in self.entries}
        guid = Guid(before[old].values("objectGUID")[0])
        new = self.by_guid(guid)
        assert new is not None
        for at, found in enumerate(self.entries):
            rows = tuple(
                (key, tuple(_moved(v.decode(), old, new.name).encode() for v in values))
                if key.lower() in LINKS
                else (key, values)
                for key, values in found.attributes
            )
            self.entries[at] = SearchEntry(_moved(found.name, old, new.name), rows)
        self._replace(new.name, cn=name_of(new.name).leaf.encode())
        self._touch(guid)

    def _bury(self, gone: SearchEntry) -> None:
        guid = Guid(gone.values("objectGUID")[0])
        leaf = escape_value(f"{name_of(gone.name).leaf}\nDEL:{guid}")
        rows = tuple(row for row in gone.attributes if row[0].lower() in _LEFT)
        dead = (*rows, ("isDeleted", (b"TRUE",)))
        self.entries.append(SearchEntry(f"CN={leaf},CN=Deleted Objects,{self.root}", dead))
        self._touch(guid)
        self._unlink(gone.name)

    def _unlink(self, gone: str) -> None:
        """Values that name a deleted entry go; the numbers of their entries stay."""
        for at, found in enumerate(self.entries):
            rows = (
                (key, tuple(v for v in values if v != gone.encode()))
                if key.lower() in LINKS
                else (key, values)
                for key, values in found.attributes
            )
            self.entries[at] = SearchEntry(found.name, tuple(row for row in rows if row[1]))

    # --- searches ---------------------------------------------------------------------------------

    def _search(self, request: SearchRequest, controls: tuple[LdapControl, ...]) -> ScriptedAnswer:
        self._replace("", highestCommittedUSN=b"%d" % self.usn)
        for entry in list(self.entries):
            if entry.name.startswith("CN=NTDS Settings,"):
                self._replace(entry.name, invocationId=self.invocation.raw)
        if self.before_search:
            step = self.before_search.pop(0)
            if callable(step):
                step(request)
        if any(control.oid == NOTIFICATION for control in controls):
            return [SearchDone(LdapResult(ResultCode.UNWILLING_TO_PERFORM))]
        asked = find_control(controls, DIR_SYNC)
        if asked is not None:
            return self._synchronised(request, DirSync.from_bytes(asked))
        wanted = any(control.oid == SHOW_DELETED for control in controls)
        if wanted and self.shows_deleted:
            return super()._search(request, controls)
        held = self.entries
        self.entries = [e for e in held if not e.values("isDeleted")]
        try:
            return super()._search(request, controls)
        finally:
            self.entries = held

    def _synchronised(self, request: SearchRequest, asked: DirSync) -> ScriptedAnswer:
        if not self.may_dirsync:
            return [SearchDone(LdapResult(ResultCode.INSUFFICIENT_ACCESS_RIGHTS))]
        number, _, context = asked.cookie.partition(b" ")
        if context not in (b"", request.base.encode()):  # a cookie is one context's
            return [SearchDone(LdapResult(ResultCode.UNWILLING_TO_PERFORM))]
        after = int(number or b"0")
        everything = SearchRequest(request.base, request.scope, request.filter)
        found = [
            e
            for e in super()._search(everything, ())
            if isinstance(e, SearchEntry) and int((e.values("uSNChanged") or (b"0",))[0]) > after
        ]
        cookie = b"%d %b" % (self.usn, request.base.encode())
        return [*found, (SearchDone(), DirSync(0, 0, cookie).control())]


def _moved(name: str, old: str, new: str) -> str:
    """A name after its entry, or one above it, was renamed from ``old`` to ``new``."""
    return name[: -len(old)] + new if name == old or name.endswith(f",{old}") else name
