"""Queues that everyone may use, by the security descriptors of their entries."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from mqis.protocol.activedirectory.rights import (
    PEEK,
    RECEIVE,
    RECEIVE_JOURNAL,
    SEND,
    from_active_directory,
)
from mqis.protocol.security.access import anonymous_rights
from mqis.protocol.security.masks import QueueRights, UserRights, generic_mapping
from mqis.texts import joined
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import Ace, AceFlags, AceType, Acl, ObjectAce, OpaqueAce
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import ANONYMOUS, EVERYONE

_ASKED = (
    ("send to it", QueueRights.WRITE_MESSAGE),
    ("receive from it", QueueRights.RECEIVE_MESSAGE),
    ("receive from its journal", QueueRights.RECEIVE_JOURNAL_MESSAGE),
)
#: Both ways to receive include it.
_PEEKING = ("peek at its messages", QueueRights.PEEK_MESSAGE)
_OPEN_TO = (EVERYONE, ANONYMOUS)
_ALLOWING = (AceType.ACCESS_ALLOWED, AceType.ACCESS_ALLOWED_OBJECT)
#: The extended rights of a queue; an entry without one gives them all.
_ON_MESSAGES = (None, SEND, RECEIVE, RECEIVE_JOURNAL, PEEK)
_TAKEN = int(UserRights.DS_CONTROL_ACCESS | UserRights.WRITE_DAC | UserRights.WRITE_OWNER)
#: The generic rights of entries of Active Directory.
_MAPPING = generic_mapping(ObjectType.USER)


@lru_cache(maxsize=4096)
def open_for(octets: bytes) -> str:
    """Returns what anonymous users may do by the descriptor of a queue's entry; empty: nothing.

    Cached, because most queues of a directory have one of a few descriptors.
    """
    found = from_active_directory(SecurityDescriptor.from_bytes(octets), ObjectType.QUEUE)
    return messages_open_for(found)


def messages_open_for(descriptor: SecurityDescriptor) -> str:
    """Returns the same by the descriptor of an MSMQ object."""
    granted = QueueRights(anonymous_rights(descriptor, generic_mapping(ObjectType.QUEUE)))
    found = [words for words, right in _ASKED if right in granted]
    if not {"receive from it", "receive from its journal"} & set(found):
        found += [words for words, right in (_PEEKING,) if right in granted]
    return joined(found)


def closed(descriptor: SecurityDescriptor) -> SecurityDescriptor | None:
    """Returns the descriptor without the rights on messages that it gives everyone.

    None if a part of them is inherited, because a directory puts inherited entries back, or comes
    from something else. All other rights stay: those who read a queue's properties and permissions
    by them still find it. Only the rights to change permissions and owner go as well, since who has
    them can give himself the others.
    """
    if descriptor.dacl is None:
        return None
    opening = [ace for ace in descriptor.dacl.aces if _taken(ace)]
    if any(ace.flags & AceFlags.INHERITED for ace in opening):
        return None
    kept = tuple(left for ace in descriptor.dacl.aces if (left := _without_taken(ace)) is not None)
    control = descriptor.control & ~(Control.SACL_PRESENT | Control.SACL_PROTECTED)
    new = replace(descriptor, dacl=Acl(kept), sacl=None, control=control)
    return None if open_for(new.to_bytes()) else new


def _without_taken(ace: Ace) -> Ace | None:
    """Returns an entry with the rights that it keeps, None if that is none."""
    taken = _taken(ace)
    if not taken or isinstance(ace, OpaqueAce):
        return ace
    left = _MAPPING.map(ace.mask) & ~taken
    return replace(ace, mask=left) if left else None


def _taken(ace: Ace) -> int:
    """The rights of an entry that everyone loses."""
    if isinstance(ace, OpaqueAce) or ace.flags & AceFlags.INHERIT_ONLY:
        return 0
    if ace.type not in _ALLOWING or ace.sid not in _OPEN_TO:
        return 0
    if isinstance(ace, ObjectAce) and ace.object_type not in _ON_MESSAGES:
        return 0
    return _MAPPING.map(ace.mask) & _TAKEN
