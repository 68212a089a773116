"""A small enterprise to ask and to change, the same in every test.

Everything in it is there through the events (3.1.6.3), which no table restricts. ``World`` does
each operation in a transaction of its own and gives back what the store holds afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import (
    IDENTIFIER_PROPERTY,
    SECURITY_PROPERTY,
    DeletedObject,
    DirectoryObject,
    Partition,
)
from mqis.protocol.directory.read_mapping import read_property
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import Transaction
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.certificates import UserSignCert, UserSignCerts
from mqis.wire.mqds.keys import (
    BASE_PROVIDER,
    ENHANCED_PROVIDER,
    PublicKey,
    PublicKeys,
    RsaPublicKey,
)
from mqis.wire.mqds.machine_address import AddressList, TaAddress
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, Value, VarType
from mqis.wire.security.sddl import parse_sddl
from mqis.wire.security.sid import Sid
from mqis.wire.seqnum import SequenceNumber
from tests import distinct

QUEUE, MACHINE, SITE = ObjectType.QUEUE, ObjectType.MACHINE, ObjectType.SITE
CN, ENTERPRISE, USER = ObjectType.CN, ObjectType.ENTERPRISE, ObjectType.USER
LINK, DELETED = ObjectType.ROUTINGLINK, ObjectType.DELETEDOBJECT


def number(n: int) -> Guid:
    """A GUID that is easily recognised: n in its last digits."""
    return Guid.from_big_endian(n.to_bytes(16, "big"))


SITE_A, SITE_B, SITE_F = number(0xA), number(0xB), number(0xF)
ENTERPRISE_ID, C13, C14, C15 = number(0xE), number(0x13), number(0x14), number(0x15)
BILLS, ORDERS, STOCK = number(0x100), number(0x101), number(0x102)
NET, ALICE, OTHER = number(0x501), number(0x701), number(0x999)
LINK_FB, LINK_AB, LINK_AF = number(0x800), number(0x801), number(0x802)

ALICE_SID = Sid.parse("S-1-5-21-1-2-3-1001").to_bytes()
BOB_SID = Sid.parse("S-1-5-21-1-2-3-1002").to_bytes()
DESCRIPTOR = parse_sddl("O:BAG:SYD:(A;;FA;;;WD)").to_bytes()
ADDRESSES = AddressList((TaAddress.ip("10.1.2.3"),)).to_bytes()
BASE_KEY = RsaPublicKey.of(0x89ABCDEF, 65537)
ENHANCED_KEY = RsaPublicKey.of(0xFEDCBA9876543210FF, 65537)
KEYS = PublicKeys(
    (PublicKey.of(BASE_KEY, BASE_PROVIDER), PublicKey.of(ENHANCED_KEY, ENHANCED_PROVIDER))
).to_bytes()
#: The shortest thing that looks like X.509: a DER SEQUENCE that begins with another one.
BARE_CERTIFICATE = bytes.fromhex("3004 3002 0500")
SECOND_CERTIFICATE = bytes.fromhex("3004 3002 0501")


def digest(certificate: bytes) -> Guid:
    return Guid(md5(certificate, usedforsecurity=False).digest())


def certificates(*ders: bytes) -> bytes:
    return UserSignCerts(tuple(UserSignCert.of(der, OTHER) for der in ders)).to_bytes()


def refusal(action: Callable[[], object]) -> int:
    """The code that ``action`` is refused with."""
    with pytest.raises(DirectoryError) as caught:
        action()
    return caught.value.hresult


def ui1(value: int) -> PropVariant:
    return PropVariant(VarType.UI1, value)


def ui2(value: int) -> PropVariant:
    return PropVariant(VarType.UI2, value)


def ui4(value: int) -> PropVariant:
    return PropVariant(VarType.UI4, value)


def i2(value: int) -> PropVariant:
    return PropVariant(VarType.I2, value)


def i4(value: int) -> PropVariant:
    return PropVariant(VarType.I4, value)


def text(value: str) -> PropVariant:
    return PropVariant(VarType.LPWSTR, value)


def texts(*values: str) -> PropVariant:
    return PropVariant(VarType.VECTOR_LPWSTR, values)


def blob(value: bytes) -> PropVariant:
    return PropVariant(VarType.BLOB, value)


def octets(value: bytes) -> PropVariant:
    return PropVariant(VarType.VECTOR_UI1, value)


def guid(value: Guid) -> PropVariant:
    return PropVariant(VarType.CLSID, value)


def guids(*values: Guid) -> PropVariant:
    return PropVariant(VarType.VECTOR_CLSID, values)


class CountingEntropy:
    """Identifiers 0xc0..1, 0xc0..2 and so on."""

    def __init__(self) -> None:
        self.given = 0

    def guid(self) -> Guid:
        self.given += 1
        return number((0xC0 << 120) + self.given)


def _own(object_type: ObjectType, properties: Properties) -> Properties:
    """An inhabitant with a descriptor of its own, which lets others do what is usual."""
    named = properties[IDENTIFIER_PROPERTY[object_type]].value
    assert isinstance(named, Guid)
    own = distinct.descriptor(object_type, int.from_bytes(named.big_endian, "big"))
    return {**properties, SECURITY_PROPERTY[object_type]: blob(own.to_bytes())}


def _queue(path: str, identifier: Guid, label: str, created: int) -> Properties:
    times = {109: i4(created), 110: i4(created + 1)}
    return {103: text(path), 101: guid(identifier), 108: text(label), **times}


def _user(n: int, sid: bytes, certificate: bytes) -> Properties:
    return {
        701: blob(sid),
        702: blob(certificates(certificate)),
        705: guids(digest(certificate)),
        706: guid(number(n)),
    }


#: Beside the object of a type that tests work on there are others, with smaller and with greater
#: identifiers, so that the first and the last one are never the right one by chance. Sites alone
#: begin with the one that tests work on.
INHABITANTS: list[tuple[ObjectType, Properties]] = [
    (ENTERPRISE, {601: text("Corp"), 604: text("PEC0"), 609: guid(ENTERPRISE_ID)}),
    (SITE, {301: text("Alpha"), 302: guid(SITE_A), 304: text("PSC1")}),
    (SITE, {301: text("Beta"), 302: guid(SITE_B), 304: text("PSC2")}),
    (SITE, {301: text("Far"), 302: guid(SITE_F), 311: ui1(1)}),
    (CN, {502: text("Lan"), 503: guid(number(0x500)), 501: ui1(3)}),
    (CN, {502: text("Net"), 503: guid(NET)}),
    (CN, {502: text("Wan"), 503: guid(number(0x502)), 501: ui1(5)}),
    (MACHINE, {203: text("C13"), 202: guid(C13), 201: guid(SITE_B), 217: i4(301), 218: i4(302)}),
    (MACHINE, {203: text("C14"), 202: guid(C14), 201: guid(SITE_A), 217: i4(500), 218: i4(501)}),
    (MACHINE, {203: text("C15"), 202: guid(C15), 201: guid(SITE_B)}),
    (QUEUE, _queue("C13\\bills", BILLS, "Bills", 401)),
    (QUEUE, _queue("C14\\orders", ORDERS, "", 510)),
    (QUEUE, _queue("C15\\stock", STOCK, "Held", 601)),
    (USER, _user(0x700, distinct.owner(0x700).to_bytes(), distinct.certificate(0x700))),
    (USER, _user(0x701, ALICE_SID, BARE_CERTIFICATE)),
    (USER, _user(0x702, distinct.owner(0x702).to_bytes(), distinct.certificate(0x702))),
    (LINK, {801: guid(SITE_F), 802: guid(SITE_B), 812: ui4(3), 806: guid(LINK_FB)}),
    (LINK, {801: guid(SITE_A), 802: guid(SITE_B), 812: ui4(5), 806: guid(LINK_AB)}),
    (LINK, {801: guid(SITE_A), 802: guid(SITE_F), 812: ui4(7), 806: guid(LINK_AF)}),
]


_FIRST = {
    QUEUE: ORDERS,
    MACHINE: C14,
    SITE: SITE_A,
    CN: NET,
    ENTERPRISE: ENTERPRISE_ID,
    USER: ALICE,
    LINK: LINK_AB,
}


class World:
    """A store with the inhabitants, or without, and a clock that stands at 1000.

    ``described``: each inhabitant has a descriptor of its own; otherwise none has one.
    """

    def __init__(
        self,
        *,
        empty: bool = False,
        described: bool = True,
        own_site: Guid | None = None,
    ) -> None:
        self.store = MemoryStore()
        self.entropy = CountingEntropy()
        self.own_site = own_site
        self.now = 1000
        for object_type, properties in [] if empty else INHABITANTS:
            secured = described and object_type in SECURITY_PROPERTY
            self.create_event(object_type, _own(object_type, properties) if secured else properties)

    def events(self, transaction: Transaction) -> DirectoryEvents:
        return DirectoryEvents(transaction, self.now, self.entropy, self.own_site)

    def create(
        self, object_type: ObjectType, path: str | None, properties: Properties
    ) -> DirectoryObject:
        with self.store.write() as transaction:
            made = self.events(transaction).create(object_type, path, properties)
        return self.same(made)

    def update(self, obj: DirectoryObject, properties: Properties) -> DirectoryObject:
        with self.store.write() as transaction:
            made = self.events(transaction).update(obj, properties)
        return self.same(made)

    def create_event(self, object_type: ObjectType, properties: Properties) -> DirectoryObject:
        with self.store.write() as transaction:
            made = self.events(transaction).create_directory_object(object_type, properties)
        return self.same(made)

    def update_event(self, obj: DirectoryObject, properties: Properties) -> DirectoryObject:
        with self.store.write() as transaction:
            made = self.events(transaction).update_directory_object(obj, properties)
        return self.same(made)

    def delete(self, obj: DirectoryObject) -> DeletedObject:
        with self.store.write() as transaction:
            return self.events(transaction).delete_directory_object(obj)

    def same(self, obj: DirectoryObject) -> DirectoryObject:
        """The stored object, which must be equal to the one that the event returned."""
        found = self.get(obj.type, obj.id)
        assert found == obj
        return found

    def get(self, object_type: ObjectType, id: Guid) -> DirectoryObject:  # noqa: A002
        with self.store.read() as view:
            found = view.get(object_type, id)
        assert found is not None
        return found

    def find(self, object_type: ObjectType, path: str) -> DirectoryObject | None:
        with self.store.read() as view:
            return view.find(object_type, path)

    def one(self, object_type: ObjectType) -> DirectoryObject:
        """The inhabitant of a type that tests work on."""
        return self.get(object_type, _FIRST[object_type])

    def show(self, obj: DirectoryObject, propid: int) -> Value:
        """The bare value that a property shows; None if it has none."""
        with self.store.read() as view:
            shown = read_property(obj, propid, view)
        return None if shown is None else shown.value

    def partition(self, id: Guid) -> Partition | None:  # noqa: A002
        with self.store.read() as view:
            return view.partition(id)

    def last(self, partition: Guid) -> SequenceNumber:
        found = self.partition(partition)
        return SequenceNumber.MIN if found is None else found.last_seq

    def snapshot(self) -> tuple[object, ...]:
        """Everything that the store holds, for tests that nothing changes."""
        with self.store.read() as view:
            objects = [obj for kind in ObjectType for obj in view.objects(kind)]
            partitions = view.partitions()
            changes = [list(view.changes(p.id, SequenceNumber.MIN)) for p in partitions]
        return objects, partitions, changes
