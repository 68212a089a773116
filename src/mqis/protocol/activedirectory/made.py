"""Values that are made of names, of several attributes or of other entries (MS-MQDSSM 3.1.6.11)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.codecs import AttributeCodec
from mqis.protocol.activedirectory.queuename import join_name, lowered
from mqis.protocol.activedirectory.rights import from_active_directory
from mqis.protocol.activedirectory.row import ReadValue
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import Value
from mqis.wire.security.descriptor import SecurityDescriptor

#: Stands in the name of an entry that lost its name to another, before its identifier.
CONFLICT_MARK: Final = "\nCNF:"
_CLUSTER = b"msclustervirtualserver"
#: Descriptors of each type that are remembered; one has 64 KiB at most.
_DESCRIPTORS = 64


# --- names ----------------------------------------------------------------------------------------


def full_path(view: EntryView) -> Value:
    return str(view.name)


def computer_name(view: EntryView) -> Value:
    """Of a machine: the computer that it stands below."""
    return (_account(view) or _required(view.name.parent.leaf)) + _conflict(view.name)


def queue_path(view: EntryView) -> Value:
    """``computer\\queue`` in lower case (3.1.6.11.2.1)."""
    computer = _account(view) or _required(view.name.parent.parent.leaf)
    return lowered(f"{computer}{_conflict(view.name.parent)}\\{_queue(view)}")


def _conflict(machine: DistinguishedName) -> str:
    """The mark of a queue manager that lost its name to another one below the same computer.

    Two domain controllers made them at once (MS-ADTS 3.1.1.5.1.2). The other one has the path.
    """
    _, mark, identifier = machine.leaf.partition(CONFLICT_MARK)
    return mark + identifier


def _account(view: EntryView) -> str:
    """The name of the computer's account, which no other computer of the domain has.

    Its common name is usually the same, and can be another computer's (E-MQDSSM-62).
    """
    return "" if view.computer is None else view.computer.text("sAMAccountName").removesuffix("$")


def qualified_computer_name(view: EntryView) -> str:
    """Empty without one: one such computer must not break every read (E-MQDSSM-16)."""
    return "" if view.computer is None else view.computer.text("dNSHostName")


def qualified_queue_path(view: EntryView) -> Value:
    """The path with the computer's DNS name; empty without one (3.1.6.11.2.2)."""
    host = qualified_computer_name(view)
    return lowered(f"{host}\\{_queue(view)}") if host else ""


def _queue(view: EntryView) -> str:
    return join_name(_required(view.name.leaf), view.entry.text("mSMQQueueNameExt"))


def _required(name: str) -> str:
    if not name:
        raise ValueError("the entry stands in a place that such an object cannot have")
    return name


def root_domain(view: EntryView) -> Value:
    return str(view.forest.root)


# --- machines -------------------------------------------------------------------------------------


def services(view: EntryView) -> ServiceAttributes:
    """The four attributes of a server (3.1.6.1.1.5, 3.1.6.11.1.5)."""
    bits = _number(view, "mSMQServiceType")
    directory_server = _flag(view, "mSMQDsServices")
    found = ServiceAttributes.from_bits(bits)
    return ServiceAttributes(
        routing=_flag(view, "mSMQRoutingServices"),
        remote_access=bool(bits & ServiceBits.RAS),
        directory_server=directory_server,
        role=found.role if directory_server else None,
    )


def service_bits(view: EntryView) -> Value:
    return services(view).bits


def _number(view: EntryView, attribute: str) -> int:
    values = view.entry.values(attribute)
    found = codecs.UNSIGNED.decode(values) if values else 0
    return found if isinstance(found, int) else 0


def _flag(view: EntryView, attribute: str) -> bool:
    values = view.entry.values(attribute)
    return bool(values) and codecs.FLAG.decode(values) == 1


def parent(view: EntryView) -> Value:
    """Of a queue: the identifier of its machine."""
    values = view.entry.values("parentGUID")
    if not values:
        raise ValueError("is missing")
    return Guid(values[0])


def clustered(view: EntryView) -> Value:
    names = view.computer_values("servicePrincipalName")
    return int(any(_CLUSTER in name.lower() for name in names))


def signing_keys(view: EntryView) -> Value:
    values = view.computer_values("mSMQSignCertificates")
    return codecs.OCTETS.decode(values) if values else b""


# --- references -----------------------------------------------------------------------------------


def referred(attribute: str) -> ReadValue:
    """Makes the reader of the one entry that an attribute names; it has to exist (3.1.6.11.5.1)."""

    def read(view: EntryView) -> Value:
        values = view.entry.values(attribute)
        found = view.references.guid_of(values[0]) if values else None
        if found is None:
            raise ValueError("names no entry that exists")
        return found

    return read


def referred_list(attribute: str) -> ReadValue:
    """Makes the reader of the entries that an attribute names; it skips dead ones (E-MQDSSM-12)."""

    def read(view: EntryView) -> Value:
        found = (view.references.guid_of(value) for value in view.entry.values(attribute))
        return tuple(sorted(guid for guid in found if guid is not None))

    return read


def gates(view: EntryView) -> Value:
    return view.gates


# --- the rest -------------------------------------------------------------------------------------


def network_protocol(view: EntryView) -> Value:
    """A site as a connected network: foreign (5) or IP (1)."""
    return 5 if _flag(view, "mSMQSiteForeign") else 1


def descriptor(object_type: ObjectType) -> AttributeCodec:
    """Makes the codec of nTSecurityDescriptor, which translates every right.

    Most objects of a directory have one of few descriptors, so that the last ones are remembered.
    """

    @lru_cache(maxsize=_DESCRIPTORS)
    def translated(octets: bytes) -> bytes:
        found = SecurityDescriptor.from_bytes(octets)
        return from_active_directory(found, object_type).to_bytes()

    return AttributeCodec(lambda values: translated(values[0]), codecs.OCTETS.encode)
