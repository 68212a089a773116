"""Entries and descriptors as tests of permissions write them."""

from __future__ import annotations

from dataclasses import replace

from mqis.wire.security.acl import AceFlags, AceType, PlainAce
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import Sid

_SACL = (
    Control.SACL_PRESENT,
    Control.SACL_PROTECTED,
    Control.SACL_COMPUTED_INHERITANCE_REQUIRED,
    Control.SACL_AUTO_INHERITED,
)
_DACL = (
    Control.DACL_PRESENT,
    Control.DACL_PROTECTED,
    Control.DACL_COMPUTED_INHERITANCE_REQUIRED,
    Control.DACL_AUTO_INHERITED,
)


def deny(sid: Sid, mask: int, flags: AceFlags = AceFlags(0)) -> PlainAce:  # noqa: B008
    return PlainAce(AceType.ACCESS_DENIED, mask, sid, flags)


def audit(sid: Sid, mask: int, flags: AceFlags) -> PlainAce:
    """Without SUCCESSFUL_ACCESS or FAILED_ACCESS among ``flags`` nothing is audited."""
    return PlainAce(AceType.SYSTEM_AUDIT, mask, sid, flags)


def has_null_sacl(sd: SecurityDescriptor) -> bool:
    return sd.sacl is None and bool(sd.control & Control.SACL_PRESENT)


def expressible(sd: SecurityDescriptor) -> SecurityDescriptor:
    """The descriptor with those Control bits alone that SDDL has words for."""
    kept = Control.SELF_RELATIVE
    for present, *others in (_DACL, _SACL):
        if sd.control & present:
            for bit in (present, *others):
                kept |= bit
    return replace(sd, control=sd.control & kept, rm_control=0)
