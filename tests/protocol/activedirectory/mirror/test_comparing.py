"""Objects of an Active Directory as a mirror keeps them, and their differences."""

from __future__ import annotations

from mqis.protocol.activedirectory.importing import NO_SITE, kept_objects
from mqis.protocol.activedirectory.mirror.comparing import changed_properties
from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.certificates import UserSignCerts
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value
from mqis.wire.seqnum import SequenceNumber

ID = Guid(b"O" * 16)
ONE, TWO = Guid(b"1" * 16), Guid(b"2" * 16)


def made(kind: ObjectType, **given: Value) -> DirectoryObject:
    values = props({int(P[name]): value for name, value in given.items()})
    return DirectoryObject(kind, ID, Guid.NULL, SequenceNumber.MIN, values)


def only(obj: DirectoryObject) -> DirectoryObject:
    (found,) = kept_objects(obj)
    return found


def test_lists_have_one_order() -> None:
    found = [
        only(made(ObjectType.MACHINE, QM_SITE_IDS=sites, QM_CNS=sites))
        for sites in ((ONE, TWO), (TWO, ONE))
    ]
    assert found[0] == found[1]
    assert found[0].value(P.QM_SITE_IDS) == (ONE, TWO)


def test_a_machine_in_no_site_gets_a_place() -> None:
    assert only(made(ObjectType.MACHINE, QM_SITE_IDS=())).value(P.QM_SITE_IDS) == (NO_SITE,)


def test_the_rest_of_a_long_name_is_in_the_path() -> None:
    found = only(made(ObjectType.QUEUE, Q_PATHNAME="a\\b", Q_NAME_SUFFIX="b"))
    assert list(found.properties) == [P.Q_PATHNAME]


def test_certificates_are_a_list() -> None:
    bare = bytes.fromhex("3005300302012a")
    given = {bare: UserSignCerts.wrap(bare, ID).to_bytes(), b"": UserSignCerts(()).to_bytes()}
    given |= {value: value for value in (*given.values(), b"\xff" * 9)}
    for value, kept in given.items():
        assert only(made(ObjectType.USER, U_SIGN_CERT=value)).value(P.U_SIGN_CERT) == kept


def test_a_site_is_a_network_too() -> None:
    for foreign, protocol in ((0, 1), (1, 5)):
        site, network = kept_objects(made(ObjectType.SITE, S_PATHNAME="Berlin", S_FOREIGN=foreign))
        assert (site.type, network.type, network.id) == (ObjectType.SITE, ObjectType.CN, site.id)
        assert network.path == "Berlin"
        assert network.value(P.CN_PROTOCOLID) == protocol


def test_only_what_differs_is_changed() -> None:
    old = made(ObjectType.QUEUE, Q_LABEL="a", Q_QUOTA=7, Q_SCOPE=1)
    new = made(ObjectType.QUEUE, Q_LABEL="b", Q_QUOTA=7)
    assert changed_properties(old, old) == {}
    assert changed_properties(old, new) == props({P.Q_LABEL: "b"})
