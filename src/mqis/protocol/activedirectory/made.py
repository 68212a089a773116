"""Values that are made of names, of several attributes or of other entries (MS-MQDSSM 3.1.6.11)."""

from __future__ import annotations

from functools import lru_cache

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.codecs import AttributeCodec
from mqis.protocol.activedirectory.queuename import join_name
from mqis.protocol.activedirectory.rights import from_active_directory, parts_of
from mqis.protocol.activedirectory.row import ReadValue
from mqis.protocol.activedirectory.view import EntryView
from mqis.protocol.directory.service import ServiceAttributes, ServiceBits
from mqis.protocol.directory.types.link import MAX_LINK_COST
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import ExtendedName
from mqis.wire.mqds.keys import PublicKeys
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import Value
from mqis.wire.security.descriptor import SecurityDescriptor

_CLUSTER = b"msclustervirtualserver"
#: Descriptors of each type that are remembered; one has 64 KiB at most.
_DESCRIPTORS = 64


# --- names ----------------------------------------------------------------------------------------


def full_path(view: EntryView) -> Value:
    return str(view.name)


def directory_path(view: EntryView) -> Value:
    return f"LDAP://{view.name}"


def computer_name(view: EntryView) -> Value:
    """Of a machine: the computer that it stands below."""
    return _required(view.name.parent.leaf)


def queue_path(view: EntryView) -> Value:
    """``computer\\queue`` in lower case (3.1.6.11.2.1)."""
    return f"{_required(view.name.parent.parent.leaf)}\\{_queue(view)}".lower()


def qualified_queue_path(view: EntryView) -> Value:
    """The same with the computer's DNS name; empty without one (3.1.6.11.2.2)."""
    host = qualified_computer_name(view)
    return f"{host}\\{_queue(view)}".lower() if host else ""


def qualified_computer_name(view: EntryView) -> str:
    """Empty without one: one such computer must not break every read (E-MQDSSM-16)."""
    return "" if view.computer is None else view.computer.text("dNSHostName")


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


def first_site(view: EntryView) -> Value:
    """One of the sites: the smallest, because values have no order (E-MQDSSM-20)."""
    sites = view.entry.values("mSMQSites")
    return min(map(Guid, sites), default=None)


def partition(view: EntryView) -> Value:
    return first_site(view) or Guid.NULL


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


def encryption_key(provider: str) -> ReadValue:
    """Makes the reader of one provider's key out of the list of them."""

    def read(view: EntryView) -> Value:
        values = view.entry.values("mSMQEncryptKey")
        if not values or not values[0]:
            return b""
        found = PublicKeys.from_bytes(values[0]).for_provider(provider)
        return b"" if found is None else found.blob

    return read


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


def names_in(attribute: str) -> ReadValue:
    def read(view: EntryView) -> Value:
        return tuple(map(_plain, view.entry.values(attribute)))

    return read


def name_in(attribute: str) -> ReadValue:
    def read(view: EntryView) -> Value:
        values = view.entry.values(attribute)
        return _plain(values[0]) if values else None

    return read


def _plain(name: bytes) -> str:
    """A name without the identifiers that the extended-DN control puts before it."""
    return str(ExtendedName.parse(name.decode()).name)


def gates(view: EntryView) -> Value:
    return view.gates


def link_cost(view: EntryView) -> Value:
    """The actual cost, and 999,999 more for each foreign end (MS-MQDS 3.1.4.21.8.1)."""
    cost = _number(view, "mSMQCost")
    ends = (referred(end)(view) for end in ("mSMQSite1", "mSMQSite2"))
    return cost + MAX_LINK_COST * sum(1 for end in ends if end in view.foreign_sites)


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


def owner(view: EntryView) -> Value:
    found = _descriptor(view)
    return found.owner.to_bytes() if found is not None and found.owner is not None else b""


def security_information(view: EntryView) -> Value:
    found = _descriptor(view)
    return 0 if found is None else int(parts_of(found))


def _descriptor(view: EntryView) -> SecurityDescriptor | None:
    values = view.entry.values("nTSecurityDescriptor")
    return SecurityDescriptor.from_bytes(values[0]) if values else None
