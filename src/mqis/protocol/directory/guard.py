"""The access check in front of every method (MS-MQDS 2.1, 3.1.4).

The text asks for a check and names no rights, so the rights are the MQSEC masks of MS-MQMQ 2.2.23
to 2.2.27 by their names. Members of the administrators group pass every check. Links have no
descriptor; what is asked of them is asked of the enterprise. What gives power over others takes a
right of its own (``powers``).

A caller who may not read an object learns as little from calls by name as from a lookup: for such
a caller the object is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import ClassVar

from mqis.protocol.directory.descriptors import descriptor_of
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.directory.ownchange import OwnChange
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.directory.powers import demands
from mqis.protocol.directory.user_certificates import certificates_of
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.protocol.security.access import Token, access_check
from mqis.protocol.security.masks import (
    EnterpriseRights,
    MachineRights,
    Rights,
    SiteRights,
    UserRights,
    generic_mapping,
    map_descriptor,
)
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import packed_value
from mqis.wire.security.sid import ANONYMOUS, Sid

# --- Limits on how much of the directory one caller may take up -----------------------------------


@dataclass(frozen=True, slots=True)
class Allowance:
    """Generous for people and programs, small against a store. Administrators have none."""

    #: Objects that the caller has created, whoever owns them now.
    max_owned: int = 10_000
    #: Certificates of one user, and the bytes of all of them together.
    max_certificates: int = 64
    max_certificate_bytes: int = 256 * 1024
    #: Changes of one hour, and the bytes that they write.
    max_changes: int = 50_000
    max_written_bytes: int = 64 << 20


DEFAULTS = Allowance()


# --- The access check in front of every method (MS-MQDS 2.1, 3.1.4) -------------------------------

#: Judgements that a guard remembers, and the longest descriptor that is remembered as it is.
MAX_JUDGED = 2_000
MAX_KEY = 256

_GET, _SET = 0x20, 0x10  # GET_*_PROPERTIES and SET_*_PROPERTIES are the same bits for all types


class Access(Enum):
    """An action of a method on an object, and the right that it takes."""

    READ = ("read", _GET, UserRights.DS_READ_PROPERTY)
    WRITE = ("write", _SET, UserRights.DS_WRITE_PROPERTY)
    DELETE = ("delete", Rights.DELETE, UserRights.DS_WRITE_PROPERTY)
    READ_SECURITY = ("read the permissions of", Rights.READ_CONTROL)
    WRITE_DACL = ("change the permissions of", Rights.WRITE_DAC)
    WRITE_OWNER = ("take ownership of", Rights.WRITE_OWNER)
    SYSTEM_SECURITY = ("use the audit list of", Rights.ACCESS_SYSTEM_SECURITY)

    right: int
    #: The same for a user, which has some rights of its own.
    user_right: int

    def __new__(cls, action: str, right: int, user_right: int | None = None) -> Access:
        access = object.__new__(cls)
        access._value_ = action
        access.right = int(right)
        access.user_right = int(right if user_right is None else user_right)
        return access


_OF_PERMISSIONS = frozenset({Access.READ_SECURITY, Access.WRITE_DACL, Access.WRITE_OWNER})

#: What a create is asked of its owner for.
CREATE_RIGHT: dict[ObjectType, tuple[ObjectType, int]] = {
    ObjectType.QUEUE: (ObjectType.MACHINE, int(MachineRights.CREATE_QUEUE)),
    ObjectType.MACHINE: (ObjectType.SITE, int(SiteRights.CREATE_MACHINE)),
    ObjectType.SITE: (ObjectType.ENTERPRISE, int(EnterpriseRights.CREATE_SITE)),
    ObjectType.CN: (ObjectType.ENTERPRISE, int(EnterpriseRights.CREATE_CN)),
    ObjectType.USER: (ObjectType.ENTERPRISE, int(EnterpriseRights.CREATE_USER)),
    ObjectType.ROUTINGLINK: (
        ObjectType.ENTERPRISE,
        int(EnterpriseRights.SET_ENTERPRISE_PROPERTIES),
    ),
}


@dataclass(frozen=True, slots=True)
class Denial:
    """One line of the audit trail."""

    caller: Sid | None
    action: str
    object_type: ObjectType
    name: str

    def __str__(self) -> str:
        caller = "anonymous" if self.caller is None else str(self.caller)
        return f"denied: {caller} may not {self.action} {self.object_type.label} {self.name}"


def _silent(_denial: Denial) -> None:
    """Records nothing."""


@dataclass(slots=True)
class Guard:
    """The checks for one caller. Equal descriptors are judged once."""

    #: A new object without permissions gets the default ones here, with its creator as the owner.
    completes_descriptors: ClassVar[bool] = True

    token: Token
    administrators: frozenset[Sid] = frozenset()
    audit: Callable[[Denial], None] = _silent
    allowance: Allowance = DEFAULTS
    is_administrator: bool = field(init=False)
    _judged: dict[tuple[ObjectType, bytes | None, int], bool] = field(default_factory=dict)
    #: How many more objects an account may create before they are counted again.
    _room: dict[Sid, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_administrator = any(self.token.holds(sid) for sid in self.administrators)

    def with_audit(self, audit: Callable[[Denial], None]) -> Guard:
        """The same checks with the same memory, whose denials ``audit`` hears."""
        guard = copy(self)
        guard.audit = audit
        return guard

    def allows(self, obj: DirectoryObject, access: Access, view: View) -> bool:
        """Returns whether the caller may, without a line in the audit trail."""
        if obj.type is ObjectType.ROUTINGLINK:
            root = enterprise(view)
            wanted = Access.READ if access is Access.READ_SECURITY else access
            wanted = Access.WRITE if wanted is Access.DELETE else wanted
            return access is Access.READ if root is None else self.allows(root, wanted, view)
        if obj.type is not ObjectType.USER:
            return self._granted(obj, access.right)
        if self._granted(obj, access.user_right):
            return True
        return access in (Access.WRITE, Access.DELETE) and self._may_write_enterprise(view)

    def check(self, obj: DirectoryObject, access: Access, view: View) -> None:
        if not self.allows(obj, access, view):
            raise self._refused(access.value, obj, view)

    def check_change(self, change: OwnChange, view: View) -> None:
        """Refuse a change that gives power over others to a caller without the right for it."""
        if self.is_administrator:
            return
        name = change.obj.path or str(change.obj.id)
        if change.obj.type is ObjectType.USER:
            self._check_user(change, view)
        for demand in demands(change, view):
            if demand.on is None or not self._granted(demand.on, demand.right):
                raise self._denied(demand.action, change.obj.type, name)

    def _check_user(self, change: OwnChange, view: View) -> None:
        """A user object is its user's alone, and never an anonymous caller's.

        Groups do not count: the SID of a user object may be that of Everyone.
        """
        states = [state for state in (change.before, change.obj) if state is not None]
        own = not self.is_anonymous and all(
            _sid_of(state) == self.token.user is not None for state in states
        )
        if not own and (self.is_anonymous or not self._may_write_enterprise(view)):
            raise self._denied("act as", ObjectType.USER, str(_sid_of(change.obj)))
        self._check_certificates(change)

    def _check_certificates(self, change: OwnChange) -> None:
        """Refuse more certificates than one user may have; a list may always become shorter."""
        allowance = self.allowance
        before = certificates_of({} if change.before is None else change.before.properties)
        after = certificates_of(change.obj.properties)
        if len(after) <= len(before):
            return
        size = sum(len(certificate.certificate) for certificate in after)
        if len(after) > allowance.max_certificates or size > allowance.max_certificate_bytes:
            raise DirectoryError(
                HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
                f"a user has at most {allowance.max_certificates} certificates of "
                f"{allowance.max_certificate_bytes} bytes together; delete old ones",
            )

    def _may_write_enterprise(self, view: View) -> bool:
        root = enterprise(view)
        return root is not None and self.allows(root, Access.WRITE, view)

    @property
    def account(self) -> Sid:
        """The account that pays for what the caller does; callers without a SID share one."""
        return self.token.user or ANONYMOUS

    @property
    def is_anonymous(self) -> bool:
        return self.token.user == ANONYMOUS

    def check_administrator(self, action: str, object_type: ObjectType, name: str) -> None:
        """Refuses a caller who is no administrator, whatever descriptors say."""
        if not self.is_administrator:
            raise self._denied(action, object_type, name)

    def check_owner(self, owner: Sid | None, object_type: ObjectType, name: str) -> None:
        """Refuse to make somebody else the owner of an object."""
        if owner is not None and not (self.is_administrator or self.token.holds(owner)):
            raise self._denied(f"make {owner} the owner of", object_type, name)

    def check_audit_list(self, object_type: ObjectType, name: str) -> None:
        """Refuse an audit list by a caller without the privilege to give one."""
        if not (self.is_administrator or self.token.security_privilege):
            raise self._denied("give an audit list to", object_type, name)

    def check_created(self, view: View, object_type: ObjectType, name: str) -> None:
        """Refuse one more object of an account that has created as many as it may.

        They are counted when half of the room that was left is used up: counting takes longer the
        more there are.
        """
        if self.is_administrator:
            return
        account = self.account
        room = self._room.get(account, 0)
        if not room:
            created = view.count_created(account.to_bytes())
            if created >= self.allowance.max_owned:
                raise self._full(created, object_type, name)
            room = (self.allowance.max_owned - created + 1) // 2
        self._room[account] = room - 1

    def _full(self, created: int, object_type: ObjectType, name: str) -> DirectoryError:
        """The refusal of one more object; the audit trail names the limit."""
        text = (
            f"create one more object, having created {created:,} of the "
            f"{self.allowance.max_owned:,} that security.max_owned of this server allows"
        )
        self.audit(Denial(self.account, f"{text}:", object_type, name))
        return DirectoryError(
            HResult.MQ_ERROR_INSUFFICIENT_RESOURCES,
            f"{self.account} may not {text}; delete some, or have an administrator raise it",
        )

    def check_create(
        self, object_type: ObjectType, owner: DirectoryObject | None, name: str
    ) -> None:
        """Refuses a caller who may not create in ``owner``, the machine, site or enterprise."""
        if owner is None:
            if not self.is_administrator:
                raise self._denied("create", object_type, name)
            return
        _, right = CREATE_RIGHT[object_type]
        if not self._granted(owner, right):
            denied = self._denied("create", object_type, name)
            if owner.type is ObjectType.MACHINE and not self._granted(owner, _GET):
                code = HResult.MQ_ERROR_MACHINE_NOT_FOUND
                raise DirectoryError(code, f"no machine for queue {name!r}")
            raise denied

    def _granted(self, obj: DirectoryObject, right: int) -> bool:
        if self.is_administrator:
            return True
        # What descriptor_of makes its answer from: a user's comes from the SID.
        stored = packed_value(obj.properties, SECURITY_PROPERTY.get(obj.type, PropId.U_SID))
        if stored is not None and len(stored) > MAX_KEY:
            stored = sha256(stored).digest()
        key = (obj.type, stored, right)
        known = self._judged.get(key)
        if known is None:
            try:
                descriptor = descriptor_of(obj)
            except WireError:  # what cannot be read grants nothing
                return False
            mapping = generic_mapping(obj.type)
            # One that came with replication or an import may still have generic rights in it.
            known = bool(
                access_check(map_descriptor(descriptor, mapping), self.token, right, mapping)
            )
            if len(self._judged) >= MAX_JUDGED:  # one lookup may meet any number of descriptors
                self._judged.clear()
            self._judged[key] = known
        return known

    def _refused(self, action: str, obj: DirectoryObject, view: View) -> DirectoryError:
        """A denial, or not found where the caller may not even see the object."""
        name = obj.path or str(obj.id)
        denied = self._denied(action, obj.type, name)
        if obj.type is ObjectType.ENTERPRISE or self.allows(obj, Access.READ, view):
            return denied
        return DirectoryError(HResult.MQDS_OBJECT_NOT_FOUND, f"no {obj.type.label} {name}")

    def _denied(self, action: str, object_type: ObjectType, name: str) -> DirectoryError:
        self.audit(Denial(self.token.user, action, object_type, name))
        return DirectoryError(
            HResult.MQ_ERROR_ACCESS_DENIED, f"not allowed to {action} {object_type.label} {name!r}"
        )


@dataclass(slots=True)
class DeferringGuard(Guard):
    """The checks for a caller whom the directory behind the views judges itself.

    What it shows may be read, and what may not be written fails there. Only permissions that were
    not shown can neither be read nor changed: what is missing of them would be made up.
    """

    completes_descriptors: ClassVar[bool] = False

    def allows(self, obj: DirectoryObject, access: Access, view: View) -> bool:
        if access is Access.SYSTEM_SECURITY:  # nobody asked the directory for an audit list
            return False
        return access not in _OF_PERMISSIONS or SECURITY_PROPERTY.get(obj.type) in obj.properties

    def check_change(self, change: OwnChange, view: View) -> None:
        """Bounds what one user may keep; rights are the directory's affair."""
        if change.obj.type is ObjectType.USER and not self.is_administrator:
            self._check_certificates(change)

    def check_owner(self, owner: Sid | None, object_type: ObjectType, name: str) -> None:
        """The directory lets nobody give an object away who may not."""

    def check_create(
        self, object_type: ObjectType, owner: DirectoryObject | None, name: str
    ) -> None:
        """The directory asks for the right to create below an entry."""


def _sid_of(user: DirectoryObject) -> Sid | None:
    """The account that a user object speaks for; None if it cannot be read."""
    value = user.value(PropId.U_SID)
    try:
        return Sid.from_bytes(value) if isinstance(value, bytes) and value else None
    except WireError:
        return None
