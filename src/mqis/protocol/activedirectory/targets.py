"""Finding the entry of an object by its name (MS-MQDSSM 3.1.6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mqis.protocol.activedirectory.forest import Forest, machine_name, queue_name
from mqis.protocol.directory.paths import QueuePath
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.errors import WireError
from mqis.wire.ldap.filters import And, Equality, Filter, Or
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType

#: The names of a computer, the most certain one first: no two computers of a domain have one
#: account name. A common name is unique in its container only (E-MQDSSM-62).
COMPUTER_NAMES: Final = ("sAMAccountName", "dNSHostName", "cn")


def computer_filter(name: str) -> Filter:
    """Finds the computers that have a name, in whatever containers they stand (E-MQDSSM-19)."""
    names = tuple(Equality(kind, _as_value(kind, name)) for kind in COMPUTER_NAMES)
    return And((Equality("objectClass", b"computer"), Or(names)))


def chosen_computer(name: str, found: Sequence[LdapEntry]) -> LdapEntry | None:
    """The one computer that a name means; None if there is none, or no certain one."""
    for kind in COMPUTER_NAMES:
        wanted = _as_value(kind, name).lower()
        named = [e for e in found if wanted in map(bytes.lower, e.values(kind))]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _as_value(kind: str, name: str) -> bytes:
    return f"{name}$".encode() if kind == "sAMAccountName" else name.encode()


def name_in_forest(path: str, forest: Forest) -> DistinguishedName | None:
    """The distinguished name by which a caller names an object (FullPath); None if it is none.

    No path of MS-MQDS is one: it would have to end with the name of this forest.
    """
    try:
        name = DistinguishedName.parse(path)
    except WireError:
        return None
    contexts = forest.root, forest.domain, forest.configuration
    return name if any(name.is_below(context) for context in contexts) else None


def computer_of(object_type: ObjectType, path: str) -> str:
    """The computer to find before the name of a machine or queue is known; empty for others."""
    if object_type is ObjectType.QUEUE:
        return QueuePath.parse(path).computer
    return path if object_type is ObjectType.MACHINE else ""


def target_of(
    object_type: ObjectType,
    path: str,
    forest: Forest,
    computer: DistinguishedName | None = None,
) -> str | None:
    """The name that follows from a path; None if it takes a search.

    ``computer`` was found by ``computer_filter``. Users and links have no names.
    """
    match object_type:
        case ObjectType.ENTERPRISE:
            return str(forest.enterprise)
        case ObjectType.SITE:
            return str(forest.site(path))
        case ObjectType.MACHINE if computer is not None:
            return str(machine_name(computer))
        case ObjectType.QUEUE if computer is not None:
            return str(queue_name(computer, QueuePath.parse(path).queue))
    return None
