"""Security descriptors of MSMQ objects as those of Active Directory, right by right.

An access mask of MSMQ must never be copied (E-MQDSSM-01): 0x20 reads properties in MSMQ and
writes them in Active Directory, 0x10 the other way round. Each MSMQ right becomes the right of
Active Directory that allows the same, and rights on messages become object ACEs with one of the
nine extended rights that every forest has (CN=Extended-Rights).

The translation never widens access. What Active Directory cannot express is left out of an ACE that
allows, and what it expresses in part counts in full in an ACE that denies. Auditing entries are
not translated: reading or writing them takes a privilege that a directory service has no use for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag

from mqis.protocol.security.masks import (
    CnRights,
    EnterpriseRights,
    MachineRights,
    QueueRights,
    SiteRights,
    UserRights,
    generic_mapping,
)
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import (
    Ace,
    AceFlags,
    AceType,
    Acl,
    ObjectAce,
    OpaqueAce,
    PlainAce,
    allow,
)
from mqis.wire.security.descriptor import Control, SecurityDescriptor


class DescriptorParts(IntFlag):
    """The value of the SD flags control (MS-ADTS 3.1.1.3.4.1.11)."""

    OWNER = 1
    GROUP = 2
    DACL = 4
    SACL = 8


#: Read with every descriptor: an ordinary user who asks for the SACL gets nothing at all.
READ_PARTS = DescriptorParts.OWNER | DescriptorParts.GROUP | DescriptorParts.DACL

_READ = UserRights.DS_READ_PROPERTY | UserRights.DS_LIST_CONTENTS
_WRITE = UserRights.DS_WRITE_PROPERTY
_STANDARD = 0x000F_0000
_EXTENDED = int(UserRights.DS_CONTROL_ACCESS)


def _extended(digits: str) -> Guid:
    return Guid.parse(f"{digits}-9c86-006008764d0e")


RECEIVE = _extended("06bd3200-df3e-11d1")
PEEK = _extended("06bd3201-df3e-11d1")
SEND = _extended("06bd3202-df3e-11d1")
RECEIVE_JOURNAL = _extended("06bd3203-df3e-11d1")
RECEIVE_DEAD_LETTER = _extended("4b6e08c0-df3c-11d1")
PEEK_DEAD_LETTER = _extended("4b6e08c1-df3c-11d1")
RECEIVE_COMPUTER_JOURNAL = _extended("4b6e08c2-df3c-11d1")
PEEK_COMPUTER_JOURNAL = _extended("4b6e08c3-df3c-11d1")
OPEN_CONNECTOR = _extended("b4e60130-df3f-11d1")


@dataclass(frozen=True, slots=True)
class _ExtendedRight:
    """``needs``: the MSMQ bits that together are the right; ``own``: the one that is its alone."""

    guid: Guid
    needs: int
    own: int


@dataclass(frozen=True, slots=True)
class _Translation:
    """Of one type: bits with a counterpart of their own, and extended rights."""

    plain: tuple[tuple[int, int], ...]
    extended: tuple[_ExtendedRight, ...] = ()


_Q, _M = QueueRights, MachineRights
_TRANSLATIONS = {
    ObjectType.QUEUE: _Translation(
        ((_Q.SET_QUEUE_PROPERTIES, _WRITE), (_Q.GET_QUEUE_PROPERTIES, _READ)),
        (
            _ExtendedRight(RECEIVE, _Q.RECEIVE_MESSAGE, _Q.DELETE_MESSAGE),
            _ExtendedRight(PEEK, _Q.PEEK_MESSAGE, _Q.PEEK_MESSAGE),
            _ExtendedRight(SEND, _Q.WRITE_MESSAGE, _Q.WRITE_MESSAGE),
            _ExtendedRight(RECEIVE_JOURNAL, _Q.RECEIVE_JOURNAL_MESSAGE, _Q.DELETE_JOURNAL_MESSAGE),
        ),
    ),
    ObjectType.MACHINE: _Translation(
        (
            (_M.SET_MACHINE_PROPERTIES, _WRITE),
            (_M.GET_MACHINE_PROPERTIES, _READ),
            (_M.CREATE_QUEUE, UserRights.DS_CREATE_CHILD),
        ),
        (
            _ExtendedRight(
                RECEIVE_DEAD_LETTER, _M.RECEIVE_DEADLETTER_MESSAGE, _M.DELETE_DEADLETTER_MESSAGE
            ),
            _ExtendedRight(
                PEEK_DEAD_LETTER, _M.PEEK_DEADLETTER_MESSAGE, _M.PEEK_DEADLETTER_MESSAGE
            ),
            _ExtendedRight(
                RECEIVE_COMPUTER_JOURNAL,
                _M.RECEIVE_JOURNAL_QUEUE_MESSAGE,
                _M.DELETE_JOURNAL_QUEUE_MESSAGE,
            ),
            _ExtendedRight(
                PEEK_COMPUTER_JOURNAL, _M.PEEK_JOURNAL_QUEUE_MESSAGE, _M.PEEK_JOURNAL_QUEUE_MESSAGE
            ),
        ),
    ),
    # Machines and servers are not created below a site, nor sites and users below the enterprise:
    # those rights have no counterpart.
    ObjectType.SITE: _Translation(
        ((SiteRights.SET_SITE_PROPERTIES, _WRITE), (SiteRights.GET_SITE_PROPERTIES, _READ))
    ),
    ObjectType.CN: _Translation(
        ((CnRights.SET_CN_PROPERTIES, _WRITE), (CnRights.GET_CN_PROPERTIES, _READ)),
        (_ExtendedRight(OPEN_CONNECTOR, CnRights.CN_OPEN_CONNECTOR, CnRights.CN_OPEN_CONNECTOR),),
    ),
    ObjectType.ENTERPRISE: _Translation(
        (
            (EnterpriseRights.SET_ENTERPRISE_PROPERTIES, _WRITE),
            (EnterpriseRights.GET_ENTERPRISE_PROPERTIES, _READ),
        )
    ),
}
_DENIES = (AceType.ACCESS_DENIED, AceType.ACCESS_DENIED_OBJECT)
_INHERITANCE = ~(AceFlags.INHERITED | AceFlags.INHERIT_ONLY)


def parts_of(descriptor: SecurityDescriptor) -> DescriptorParts:
    """Returns the parts that a descriptor has and that are written."""
    parts = DescriptorParts(0)
    if descriptor.owner is not None:
        parts |= DescriptorParts.OWNER
    if descriptor.group is not None:
        parts |= DescriptorParts.GROUP
    if descriptor.control & Control.DACL_PRESENT:
        parts |= DescriptorParts.DACL
    return parts


def _kept(control: Control) -> Control:
    return control & (Control.DACL_PROTECTED | Control.DACL_PRESENT)


# --- to Active Directory --------------------------------------------------------------------------


def to_active_directory(
    descriptor: SecurityDescriptor, object_type: ObjectType
) -> SecurityDescriptor:
    """Translates the descriptor of an MSMQ object into one for its entry."""
    dacl = descriptor.dacl
    if descriptor.has_null_dacl:  # everybody may do everything that MSMQ knows, and no more
        dacl = Acl((allow(well_known.EVERYONE, generic_mapping(object_type).all),))
    if dacl is not None:
        dacl = Acl(tuple(made for ace in dacl.aces for made in _to_entry(ace, object_type)))
    return SecurityDescriptor(
        descriptor.owner, descriptor.group, dacl, None, _kept(descriptor.control)
    )


def _to_entry(ace: Ace, object_type: ObjectType) -> Iterator[Ace]:
    plain = _applicable(ace)
    if plain is None or plain.type not in (AceType.ACCESS_ALLOWED, AceType.ACCESS_DENIED):
        return
    denies = plain.type is AceType.ACCESS_DENIED
    mask = generic_mapping(object_type).map(plain.mask)
    translation = _TRANSLATIONS[object_type]
    rights = mask & _STANDARD
    for own, counterpart in translation.plain:
        rights |= counterpart if mask & own else 0
    if rights:
        yield PlainAce(plain.type, rights, plain.sid, plain.flags)
    kind = AceType.ACCESS_DENIED_OBJECT if denies else AceType.ACCESS_ALLOWED_OBJECT
    for right in translation.extended:
        meant = mask & right.needs if denies else mask & right.needs == right.needs
        if meant:
            yield ObjectAce(kind, _EXTENDED, plain.sid, right.guid, None, plain.flags)


# --- from Active Directory ------------------------------------------------------------------------


def from_active_directory(
    descriptor: SecurityDescriptor, object_type: ObjectType
) -> SecurityDescriptor:
    """Translates the descriptor of an entry into that of an MSMQ object."""
    dacl = descriptor.dacl
    if dacl is not None:
        dacl = Acl(tuple(_merged(_from_entry(ace, object_type) for ace in dacl.aces)))
    return SecurityDescriptor(
        descriptor.owner, descriptor.group, dacl, None, _kept(descriptor.control)
    )


def _from_entry(ace: Ace, object_type: ObjectType) -> PlainAce | None:
    found = _applicable(ace)
    if found is None or found.type in (AceType.SYSTEM_AUDIT, AceType.SYSTEM_AUDIT_OBJECT):
        return None
    denies = found.type in _DENIES
    target = found.object_type if isinstance(found, ObjectAce) else None
    mask = _mask_of(UserRights(found.mask), target, object_type, denies)
    kind = AceType.ACCESS_DENIED if denies else AceType.ACCESS_ALLOWED
    return PlainAce(kind, mask, found.sid, found.flags & _INHERITANCE) if mask else None


def _mask_of(rights: int, target: Guid | None, object_type: ObjectType, denies: bool) -> int:
    """The MSMQ rights of an ACE, which concerns the whole entry or one ``target``."""
    rights = generic_mapping(ObjectType.USER).map(rights)
    translation = _TRANSLATIONS[object_type]
    mask = rights & _STANDARD if target is None or denies else 0
    for own, counterpart in translation.plain:
        if target is None or denies:  # a right on one property alone is not the right on them all
            meant = rights & counterpart if denies else rights & counterpart == counterpart
            mask |= own if meant else 0
    if rights & _EXTENDED:
        for right in translation.extended:
            if target in (None, right.guid):
                mask |= right.own if denies else right.needs
    return int(mask)


def _applicable(ace: Ace) -> PlainAce | ObjectAce | None:
    """The ACE if it applies to the object itself; a condition counts as met where it denies."""
    if ace.flags & AceFlags.INHERIT_ONLY:
        return None
    if not isinstance(ace, OpaqueAce):
        return ace
    found = ace.unconditional()
    return found if found is not None and found.type in _DENIES else None


def _merged(aces: Iterator[PlainAce | None]) -> list[PlainAce]:
    """Joins neighbours of one trustee: one MSMQ entry became several of them."""
    merged: list[PlainAce] = []
    for ace in aces:
        if ace is None:
            continue
        last = merged[-1] if merged else None
        if last is not None and (last.type, last.sid, last.flags) == (ace.type, ace.sid, ace.flags):
            merged[-1] = PlainAce(ace.type, last.mask | ace.mask, ace.sid, ace.flags)
        else:
            merged.append(ace)
    return merged
