"""Read Directory against a scripted server: what its tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqis.client import (
    Filter,
    equal,
)
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.runtime.directory.results import no_properties
from mqis.wire.mqds import dscomm
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import OK, Line, Scripted, run, scripted_event
from tests.client.samples import (
    KINDS,
    ONE,
    rows,
)

SUCCESS = DirectoryOperationResult.SUCCESS
GENERIC = DirectoryOperationResult.GENERIC_ERROR
NOT_FOUND = DirectoryOperationResult.OBJECT_NOT_FOUND
NO_ATTRIBUTE = DirectoryOperationResult.ATTRIBUTE_NOT_FOUND
END = DirectoryOperationResult.END_OF_DATA

Values = Mapping[Any, PropVariant]

#: The number of each type, and the filter by which one call reads it.
DIRECT: dict[str, tuple[int, Filter]] = {
    "QueueManager": (2, equal("Identifier", ONE)),
    "Queue": (1, equal("Identifier", ONE)),
    "Enterprise": (6, equal("Identifier", ONE)),
    "Site": (3, equal("Identifier", ONE)),
    "RoutingLink": (8, equal("Identifier", ONE)),
    "ConnectedNetwork": (5, equal("Identifier", ONE)),
    "User": (7, equal("CertificateDigestList", ONE)),
}


def giving(values: Values) -> Line:
    """Answers a read with these values; VT_EMPTY for any other property."""

    def line(_call: object, request: Any) -> dscomm.PropsGot:
        empty = PropVariant(VarType.EMPTY, None)
        found = tuple(values.get(propid, empty) for propid in request.ids)
        return dscomm.PropsGot(found, bytes(request.signature_size), OK)

    return line


def both(line: Line) -> dict[Any, Line]:
    return {dscomm.GET_PROPS: line, dscomm.GET_PROPS_GUID: line}


def failing(code: int) -> dict[Any, Line]:
    return both(lambda _c, r: no_properties(r, code))


def read(
    kind: Any,
    filters: Sequence[Filter] | None,
    attributes: Sequence[str] | None = None,
    lines: Mapping[Any, Line] | None = None,
) -> tuple[Outcome[Any], Scripted]:
    return run(scripted_event(lambda ev: ev.read_directory(kind, filters, attributes), lines))


def read_values(kind: str, values: Values, attributes: Sequence[str] | None = None) -> Any:
    """The element that a server with these values gives."""
    outcome, _ = read(KINDS[kind], [DIRECT[kind][1]], attributes, both(giving(values)))
    assert outcome.status is SUCCESS
    return outcome.value


def refused(outcome: Outcome[Any], peer: Scripted) -> None:
    assert outcome.status is GENERIC
    assert peer.asked == []


def public(kind: str) -> list[int]:
    """The identifiers below 1000 of the type's read table, each once."""
    ids = dict.fromkeys(int(row["propid"]) for row in rows(kind, "read"))
    return [propid for propid in ids if propid < 1000]


def lookup_of(*found: Sequence[PropVariant]) -> dict[Any, Line]:
    """A lookup of these rows, one for each call."""
    left = [tuple(row) for row in found]

    def line(_call: object, request: Any) -> dscomm.LookupGot:
        return dscomm.LookupGot(left.pop(0) if left else (), bytes(request.signature_size), OK)

    return {dscomm.LOOKUP_NEXT: line}
