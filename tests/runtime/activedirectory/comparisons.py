"""Lookups that the directory compares, beside the same ones compared object by object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.directory.lookup_query import Query
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.directory.read_mapping import is_readable, read_property
from mqis.protocol.directory.restrictions import Relation, Restriction
from mqis.protocol.directory.types.ldap import Use
from mqis.protocol.ports import View
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES, prop
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId as P
from mqis.wire.propvariant import Value, VarType

KINDS: tuple[ObjectType, ...] = tuple(
    kind for kind in ObjectType if kind is not ObjectType.DELETEDOBJECT
)
#: What the directory compares, and two properties that say where to look.
COMPARED = [
    row.id
    for row in ATTRIBUTE_ROWS.values()
    if row.uses & Use.FILTER or row.id in (P.QM_SERVICE, P.Q_PATHNAME, P.Q_QMID)
]
#: Constants of one property; more of them say nothing new.
MOST_CONSTANTS = 4
#: Texts that would change a filter, if they became part of its text.
HOSTILE = ("*", ")(cn=*", "x)(|(objectClass=*", "(", "\\2a", "a\x01b", "\ud800", "x" * 5000)
CONSTANTS: dict[P, tuple[Value, ...]] = {
    P.Q_LABEL: ("bills", "BILLS", " bills ", "größe", "", *HOSTILE),
    P.Q_PATHNAME: ("srv1\\orders", "no path", *HOSTILE[:3]),
    P.Q_TYPE: (Guid(b"t" * 16), Guid.NULL),
    P.Q_JOURNAL: (0, 1, 7),
    P.Q_TRANSACTION: (0, 1),
    P.Q_QUOTA: (7, 0, 0xFFFFFFFF),
    P.Q_BASEPRIORITY: (-3, 0, 3, 32767),
    P.Q_PRIV_LEVEL: (0, 1, 2),
    P.Q_CREATE_TIME: (0, 2_147_483_647),
    P.QM_SERVICE: (0, 1, 8),
    P.QM_FOREIGN: (0, 1),
    P.QM_OS: (0, 77),
    P.QM_MACHINE_TYPE: ("", "*"),
    P.QM_SERVICE_ROUTING: (0, 1),
    P.S_PATHNAME: ("berlin", "*", "nowhere"),
    P.S_FOREIGN: (0, 1),
    P.S_INTERVAL1: (0, 2, 65535),
    P.S_NT4_STUB: (0, 1),
    P.L_ACTUAL_COST: (0, 7),
    P.L_DESCRIPTION: ("", "*"),
    P.CN_NAME: ("paris", "*"),
    P.U_SIGN_CERT: (b"", b"*"),
    P.E_VERSION: (0, 200),
}


def restrictions_of(view: View) -> list[Restriction]:
    """Every relation of every property to ``CONSTANTS`` and to values that objects show."""
    constants = {propid: dict.fromkeys(values) for propid, values in CONSTANTS.items()}
    for kind in KINDS:
        for obj in view.objects(kind):
            for propid in filter(is_readable, COMPARED):
                shown = read_property(obj, propid, view)
                known = constants.setdefault(propid, {})
                if shown is not None and len(known) < MOST_CONSTANTS:
                    known[shown.value] = None
    return [
        Restriction(relation, propid, prop(propid, value))
        for propid, values in constants.items()
        for relation, value in product(Relation, (*values, *_unknown(propid)))
    ]


def _unknown(propid: P) -> tuple[Value, ...]:
    return (Guid(b"x" * 16), Guid.NULL) if PROPERTIES[propid].vt is VarType.CLSID else ()


def queries(restrictions: list[Restriction], pairs: int, seed: int = 1) -> Iterator[Query]:
    """A lookup of each restriction, and of some pairs and triples."""
    chance = Random(seed)
    groups: list[tuple[Restriction, ...]] = [(one,) for one in restrictions]
    for _ in range(pairs):
        first = chance.choice(restrictions)
        kind = PROPERTIES[first.propid].object_type
        same = [r for r in restrictions if PROPERTIES[r.propid].object_type is kind]
        groups.append((first, *chance.choices(same, k=chance.choice((1, 2)))))
    for group in groups:
        kind = PROPERTIES[group[0].propid].object_type
        yield Query.make((IDENTIFIER_PROPERTY[kind],), group)


def check_equal(view: View, asked: Iterable[Query]) -> int:
    """Compares the answers, and returns how many objects they had in all."""
    everything = {kind: list(view.objects(kind)) for kind in KINDS}
    found = 0
    for query in asked:
        wanted = {
            obj.id
            for obj in everything[query.object_type]
            if all(r.test(view)(obj) for r in query.restrictions)
        }
        answer = [obj.id for obj in query.matching(view) if obj is not None]
        assert set(answer) == wanted, " and ".join(map(str, query.restrictions))
        assert len(answer) == len(wanted)
        found += len(answer)
    return found
