"""Finding the entry of an object by its name (MS-MQDSSM 3.1.6.3)."""

from __future__ import annotations

from mqis.protocol.activedirectory.forest import Forest, machine_name, queue_name
from mqis.protocol.directory.paths import QueuePath
from mqis.wire.ldap.filters import And, Equality, Filter
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType


def computer_filter(name: str) -> Filter:
    """Finds a computer in whatever container it stands (E-MQDSSM-19), by its short or DNS name."""
    by_name = Equality("sAMAccountName", f"{name}$".encode())
    if "." in name:
        by_name = Equality("dNSHostName", name.encode())
    return And((Equality("objectClass", b"computer"), by_name))


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
