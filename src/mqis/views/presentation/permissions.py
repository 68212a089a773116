"""Security descriptors as text: users, allowed or denied, and rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType

from mqis.protocol.security.masks import (
    CnRights,
    EnterpriseRights,
    MachineRights,
    QueueRights,
    Rights,
    SiteRights,
    generic_mapping,
)
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import AceFlags, AceType, OpaqueAce
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

_RIGHTS: dict[ObjectType, type[IntFlag]] = {
    ObjectType.QUEUE: QueueRights,
    ObjectType.MACHINE: MachineRights,
    ObjectType.SITE: SiteRights,
    ObjectType.ENTERPRISE: EnterpriseRights,
    ObjectType.CN: CnRights,
}
_EFFECTS: dict[int, str] = {
    AceType.ACCESS_ALLOWED: "allowed",
    AceType.ACCESS_ALLOWED_OBJECT: "allowed",
    AceType.ACCESS_DENIED: "denied",
    AceType.ACCESS_DENIED_OBJECT: "denied",
    AceType.SYSTEM_AUDIT: "audited",
    AceType.SYSTEM_AUDIT_OBJECT: "audited",
}
_NAMES = {
    well_known.EVERYONE: "Everyone",
    well_known.CREATOR_OWNER: "Creator owner",
    well_known.OWNER_RIGHTS: "Owner rights",
    well_known.NETWORK: "Network",
    well_known.ANONYMOUS: "Anonymous",
    well_known.AUTHENTICATED_USERS: "Authenticated users",
    well_known.LOCAL_SYSTEM: "Local system",
    well_known.LOCAL_SERVICE: "Local service",
    well_known.NETWORK_SERVICE: "Network service",
    well_known.ADMINISTRATORS: "Administrators",
    well_known.USERS: "Users",
    well_known.GUESTS: "Guests",
}
FULL_CONTROL = "full control"

#: The names of accounts, such as ``LAB\\alice``, by their SIDs.
AccountNames = Mapping[Sid, str]
NO_NAMES: AccountNames = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Permission:
    """One entry of an access control list."""

    list: str
    who: str
    sid: str | None
    effect: str
    mask: int | None
    rights: tuple[str, ...]
    flags: tuple[str, ...]


def permissions(
    sd: SecurityDescriptor, object_type: ObjectType, accounts: AccountNames = NO_NAMES
) -> list[Permission]:
    """The entries of both lists, in the order in which they are evaluated."""
    found = []
    for name, acl in (("dacl", sd.dacl), ("sacl", sd.sacl)):
        for ace in () if acl is None else acl.aces:
            flags = tuple(str(flag.name).lower() for flag in AceFlags if flag & ace.flags)
            if isinstance(ace, OpaqueAce):
                effect = f"entry of type {int(ace.type)}"
                found.append(Permission(name, "", None, effect, None, (), flags))
                continue
            effect = _EFFECTS[ace.type]
            rights = rights_of(ace.mask, object_type)
            sid = str(ace.sid)
            user = who(ace.sid, accounts)
            found.append(Permission(name, user, sid, effect, int(ace.mask), rights, flags))
    return found


def who(sid: Sid | None, accounts: AccountNames = NO_NAMES) -> str:
    """The name and SID of a user, ``Everyone (S-1-1-0)``; only the SID if it has no name."""
    if sid is None:
        return "nobody"
    name = _NAMES.get(sid) or accounts.get(sid)
    return str(sid) if name is None else f"{name} ({sid})"


def rights_of(mask: int, object_type: ObjectType) -> tuple[str, ...]:
    """The rights of a mask by the names of MS-MQMQ 2.2.23 to 2.2.27, without MQSEC."""
    mapping = generic_mapping(object_type)
    mapped = mapping.map(mask)
    if mapped & mapping.all == mapping.all:
        mapped &= ~int(mapping.all)
        return (FULL_CONTROL, *_names(mapped, Rights))
    own = _RIGHTS[object_type]
    known = sum(int(right) for right in own)
    return (*_names(mapped & known, own), *_names(mapped & ~known, Rights))


def _names(mask: int, kind: type[IntFlag]) -> tuple[str, ...]:
    names = [str(right.name).lower() for right in kind if mask & right]
    rest = mask & ~sum(int(right) for right in kind)
    return (*names, *([f"0x{rest:x}"] if rest else []))


def remark(sd: SecurityDescriptor) -> str | None:
    """The meaning of a missing or empty list; None for any other."""
    if sd.has_null_dacl:
        return "there is no list of permissions: everybody may do everything"
    if sd.dacl is not None and not sd.dacl.aces:
        return "the list of permissions is empty: nobody may do anything"
    return None
