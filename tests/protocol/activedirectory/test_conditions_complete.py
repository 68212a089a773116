"""No condition excludes an object that meets the restriction it was made of.

All attributes that can be compared, with values that are usual, at the ends of their ranges and
beyond them; all relations; all constants. Objects are read and compared as a lookup does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from mqis.protocol.activedirectory.conditions import conditions_of, search_filter
from mqis.protocol.activedirectory.reading import read_object, shown_of
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.read_mapping import is_readable
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.ldap.entry import BadAttribute, LdapEntry
from mqis.storage.memory_store import MemoryStore
from mqis.testing.activedirectory import OPEN
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import PropVariant, Value, VarType
from tests.protocol.activedirectory.helpers import (
    COMPUTER_ENTRY,
    FOREST,
    GATE,
    ID,
    MACHINE,
    NAMES,
    REFERENCES,
    SITE1,
    SITE2,
    entry,
    view,
)
from tests.protocol.activedirectory.ldap_judge import matches

SID = bytes.fromhex("010500000000000515000000010000000200000003000000f4010000")
CLASSES = {
    ObjectType.QUEUE: (MACHINE.child("CN", "q"), "mSMQQueue"),
    ObjectType.MACHINE: (MACHINE, "mSMQConfiguration"),
    ObjectType.SITE: (FOREST.site("Berlin"), "site"),
    ObjectType.CN: (FOREST.site("Berlin"), "site"),
    ObjectType.USER: (FOREST.domain.child("CN", "Anna"), "user"),
    ObjectType.ROUTINGLINK: (FOREST.enterprise.child("CN", "link"), "mSMQSiteLink"),
}
#: What an entry needs to be read at all.
NEEDED: dict[str, tuple[bytes, ...]] = {
    "objectGUID": (ID.raw,),
    "cn": (b"Berlin",),
    "whenCreated": (b"20240102030405.0Z",),
    "whenChanged": (b"20240102030405.0Z",),
    "nTSecurityDescriptor": (OPEN,),
    "parentGUID": (SITE1.raw,),
    "objectSid": (SID,),
    "objectCategory": (b"person",),
    "mSMQCost": (b"5",),
    "mSMQSite1": (str(NAMES[SITE1]).encode(),),
    "mSMQSite2": (str(NAMES[SITE2]).encode(),),
}
_NUMBERS = [b"-70000", b"-32768", b"-1", b"0", b"1", b"2", b"5", b"40000", b"70000", b"2147483647"]
_FLAGS: list[tuple[bytes, ...]] = [(b"TRUE",), (b"FALSE",)]
_SITES: list[tuple[bytes, ...]] = [(SITE1.raw,), (SITE2.raw, SITE1.raw), (bytes(16),)]
_TEXTS: list[tuple[bytes, ...]] = [
    (b"a",),
    (b"B",),
    (b" a ",),
    (b"orders*",),
    ("GR\u00d6\u00dfe".encode(),),
    (b"x", b"a"),
]
_TIMES: list[tuple[bytes, ...]] = [
    (b"16010101000000.0Z",),
    (b"19700101000000.0Z",),
    (b"20240102030405.0Z",),
]
_TIMES += [(b"20500101000000.0Z",)]

CONSTANTS: dict[VarType, list[Value]] = {
    VarType.UI1: [0, 1, 2, 7],
    VarType.I2: [-32768, -1, 0, 5, 32767],
    VarType.UI2: [0, 1, 2, 5, 65535],
    VarType.UI4: [0, 1, 2, 5, 77, 40000, 0xFFFFFFFF],
    VarType.I4: [-1, 0, 1, 1_704_164_645, 2_147_483_647],
    VarType.LPWSTR: [
        "",
        "a",
        "A",
        " a ",
        "b",
        "Berlin",
        "*",
        "gr\u00f6\u00dfe",
        "\ud800",
        str(NAMES[SITE1]),
        str(NAMES[SITE2]).upper(),
    ],
    VarType.CLSID: [ID, SITE1, SITE2, Guid.NULL],
    VarType.VECTOR_CLSID: [(), (SITE1,), (SITE2, SITE1), (SITE1, SITE2)],
    VarType.VECTOR_LPWSTR: [(), (str(NAMES[GATE]),), (str(NAMES[SITE1]), "a"), ("no name",)],
    VarType.BLOB: [b"", b"k", SID, b"x" * 2000],
}


def compared() -> list[P]:
    """The properties of lookups that the directory may compare."""
    return [
        row.id
        for row in ATTRIBUTE_ROWS.values()
        if (row.uses & Use.FILTER or row.id is P.QM_SERVICE)
        and is_readable(row.id)
        and row.object_type in CLASSES
    ]


def values_of(attribute: str, propid: P) -> list[tuple[bytes, ...]]:  # noqa: PLR0911  one a kind
    """Sets of values that an attribute can have; the empty one is the absent attribute."""
    if attribute in ("objectGUID", "mSMQSite1", "mSMQSite2"):
        return [NEEDED[attribute]]
    if attribute.startswith("when"):
        return _TIMES
    vt = ROWS[propid].vt
    if attribute in ("mSMQServiceType", "mSMQNt4Stub", "mSMQOSType") or vt in (
        VarType.I2, VarType.UI2, VarType.UI4
    ):  # fmt: skip
        several = [(b"0", b"5")] if attribute == "mSMQNt4Stub" else []
        return [(), *((number,) for number in _NUMBERS), *several]
    if vt in (VarType.CLSID, VarType.VECTOR_CLSID):
        return [(), *_SITES]
    if vt is VarType.VECTOR_LPWSTR:
        return [(), *((str(NAMES[one]).encode(),) for one in (GATE, SITE1))]
    if vt is VarType.LPWSTR:
        return _TEXTS if attribute == "cn" else [(), *_TEXTS]
    if vt is VarType.BLOB:
        return [(SID,)] if attribute == "objectSid" else [(), (b"k",), (b"x" * 2000,)]
    return [(), *_FLAGS, *([(b"FALSE", b"TRUE")] if attribute == "mSMQSiteForeign" else [])]


def entries(propid: P) -> Iterator[LdapEntry]:
    row = ATTRIBUTE_ROWS[propid]
    name, ldap_class = CLASSES[row.object_type]
    flags = ("mSMQRoutingServices", "mSMQDsServices")
    choices = [
        [(), *_FLAGS] if attribute in flags else values_of(attribute, propid)
        for attribute in row.attributes
    ]
    for chosen in product(*choices):
        given = {**NEEDED, **dict(zip(row.attributes, chosen, strict=True))}
        yield entry(name, ldap_class, **{key: value for key, value in given.items() if value})


@pytest.mark.parametrize("propid", compared(), ids=lambda propid: propid.name)
@pytest.mark.req("MQDSSM-3.1.6.4-01", "MQDSSM-3.1.6.15-07", "MQDSSM-3.1.6.15-08")
def test_a_condition_finds_all_that_the_restriction_wants(propid: P) -> None:
    object_type, vt = ATTRIBUTE_ROWS[propid].object_type, ROWS[propid].vt
    restrictions = [
        Restriction(relation, propid, PropVariant(vt, constant))
        for relation, constant in product(Relation, CONSTANTS[vt])
    ]
    met = 0
    with MemoryStore().read() as store:
        for found in entries(propid):
            try:
                shown = view(found, computer=COMPUTER_ENTRY)
                obj = read_object(shown, object_type, ENTERPRISE_PARTITION, shown_of(object_type))
            except BadAttribute:
                continue  # a lookup leaves it out
            for restriction in restrictions:
                if restriction.test(store)(obj):
                    met += 1
                    made = search_filter(object_type, *conditions_of([restriction], REFERENCES))
                    assert matches(made, found), f"{restriction} of {found.attributes}"
    assert met, "no entry meets any restriction: nothing was compared"
