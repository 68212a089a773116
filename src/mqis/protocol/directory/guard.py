"""Who may do what (MS-MQDS 2.1, 3.1.4): the access check in front of every method.

The text asks for a check and names no rights, so the rights are the MQSEC masks of MS-MQMQ 2.2.23
to 2.2.27 by their names. Members of the administrators group pass every check. Links have no
descriptor; what is asked of them is asked of the enterprise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256

from mqis.protocol.directory.descriptors import descriptor_of
from mqis.protocol.directory.objects import SECURITY_PROPERTY, DirectoryObject
from mqis.protocol.directory.ownership import enterprise
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
from mqis.wire.security.sid import Sid

#: Judgements that a guard remembers, and the longest descriptor that is remembered as it is.
MAX_JUDGED = 2_000
MAX_KEY = 256

_GET, _SET = 0x20, 0x10  # GET_*_PROPERTIES and SET_*_PROPERTIES are the same bits for all types


class Access(Enum):
    """What a method does to an object, and the right that it takes."""

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
        who = "anonymous" if self.caller is None else str(self.caller)
        return f"denied: {who} may not {self.action} {self.object_type.label} {self.name}"


def _silent(_denial: Denial) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Guard:
    """The checks for one caller. Equal descriptors are judged once."""

    token: Token
    administrators: frozenset[Sid] = frozenset()
    audit: Callable[[Denial], None] = _silent
    is_administrator: bool = field(init=False)
    _judged: dict[tuple[ObjectType, bytes | None, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_administrator = any(self.token.holds(sid) for sid in self.administrators)

    @property
    def judged(self) -> int:
        """How many judgements it remembers."""
        return len(self._judged)

    def allows(self, obj: DirectoryObject, access: Access, view: View) -> bool:
        """Whether the caller may, without a word in the audit trail."""
        if obj.type is ObjectType.ROUTINGLINK:
            root = enterprise(view)
            wanted = Access.READ if access is Access.READ_SECURITY else access
            wanted = Access.WRITE if wanted is Access.DELETE else wanted
            return access is Access.READ if root is None else self.allows(root, wanted, view)
        is_user = obj.type is ObjectType.USER
        return self._granted(obj, access.user_right if is_user else access.right)

    def check(self, obj: DirectoryObject, access: Access, view: View) -> None:
        if not self.allows(obj, access, view):
            raise self._denied(access.value, obj.type, obj.path or str(obj.id))

    def check_create(
        self, object_type: ObjectType, owner: DirectoryObject | None, name: str
    ) -> None:
        """Whether the caller may create in ``owner``, the machine, site or enterprise."""
        if owner is None:
            if not self.is_administrator:
                raise self._denied("create", object_type, name)
            return
        _, right = CREATE_RIGHT[object_type]
        if not self._granted(owner, right):
            raise self._denied("create", object_type, name)

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

    def _denied(self, action: str, object_type: ObjectType, name: str) -> DirectoryError:
        self.audit(Denial(self.token.user, action, object_type, name))
        return DirectoryError(
            HResult.MQ_ERROR_ACCESS_DENIED, f"not allowed to {action} {object_type.label} {name!r}"
        )
