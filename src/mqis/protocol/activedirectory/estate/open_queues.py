"""Queues that everyone may use, by the security descriptors of their entries."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from mqis.protocol.activedirectory.rights import from_active_directory
from mqis.protocol.security.access import anonymous_rights
from mqis.protocol.security.masks import QueueRights, generic_mapping
from mqis.texts import joined
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.acl import Ace, AceFlags, AceType, Acl, OpaqueAce
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
    """Returns the descriptor without what it allows everyone; None if it inherits that.

    Owner, group and all other entries stay. A directory puts inherited entries back.
    """
    if descriptor.dacl is None:
        return None
    opening = [ace for ace in descriptor.dacl.aces if _opens(ace)]
    if not opening or any(ace.flags & AceFlags.INHERITED for ace in opening):
        return None
    kept = tuple(ace for ace in descriptor.dacl.aces if not _opens(ace))
    control = descriptor.control & ~(Control.SACL_PRESENT | Control.SACL_PROTECTED)
    return replace(descriptor, dacl=Acl(kept), sacl=None, control=control)


def _opens(ace: Ace) -> bool:
    return not isinstance(ace, OpaqueAce) and ace.type in _ALLOWING and ace.sid in _OPEN_TO
