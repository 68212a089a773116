"""Requests that differ in a name alone: read without being decoded, answered without encoding.

Many callers read the same few lists of properties, each of its own objects, or look up objects by
one property. So a request is a shape, which says what is read, and a name or a constant. The shape
is decoded and checked once and gives a plan. Values are copied from the object as it is stored, and
what an object shows of the last list is kept with it. Rights are judged for each call.

Whatever is unusual, and every refusal, is left to the handler, before anything has happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mqis.protocol.directory.guard import Guard
from mqis.protocol.directory.locate import Target, object_type_of
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.read_methods import (
    LookupPlan,
    ReadPlan,
    find_readable,
    plan_lookup,
    plan_read,
)
from mqis.protocol.errors import DirectoryError
from mqis.protocol.ports import View
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.shortstubs import (
    RequestedConstant,
    RequestedName,
    SplitRequest,
    constantless,
    nameless,
    properties_answer,
    split_constant,
    split_guid,
    split_path,
)
from mqis.wire.ndr import Syntax
from mqis.wire.ndr.packed import encode_packed_rows
from mqis.wire.propertybag import PropertyBag

#: Shapes of requests that are remembered, and the largest.
MAX_SHAPES, MAX_SHAPE = 1_024, 4_096
#: The longest values that are kept with an object.
MAX_SHOWN = 2_048
_NO_HANDLE = bytes(20)


class RequestShape(NamedTuple):
    """What requests for the same properties of other objects have in common."""

    opnum: int
    syntax: Syntax
    kind: bytes
    at: int
    rest: bytes
    signature_size: bytes


@dataclass(frozen=True, slots=True, eq=False)
class ShapePlan:
    """A shape, decoded and checked."""

    object_type: ObjectType
    read: ReadPlan
    signature_size: int
    syntax: Syntax

    def answer(self, view: View, guard: Guard, name: str | Guid) -> bytes | None:
        """The answer about an object; None: its handler answers."""
        path, guid = (name, None) if isinstance(name, str) else (None, name)
        obj = find_readable(view, guard, Target(self.object_type, path, guid), self.read)
        if obj is None:
            return None
        bag = obj.properties if isinstance(obj.properties, PropertyBag) else None
        if bag is not None and bag.shown is not None and bag.shown[0] is self:
            return bag.shown[1]
        return self._encoded(obj, bag, view)

    def _encoded(self, obj: DirectoryObject, bag: PropertyBag | None, view: View) -> bytes | None:
        packed = self.read.packed(obj, view)
        values = None if packed is None else encode_packed_rows((packed,), self.syntax)
        if packed is None or values is None:
            return None
        answer = properties_answer(values, len(packed), self.signature_size, self.syntax)
        if bag is not None and self.read.is_own and len(answer) <= MAX_SHOWN:
            bag.shown = self, answer
        return answer


def plan_read_of(
    opnum: int, request: SplitRequest, syntax: Syntax
) -> tuple[ShapePlan, str | Guid] | None:
    """The plan and the name of S_DSGetProps or S_DSGetPropsGuid; None: its handler answers."""
    split = split_path if opnum == dscomm.GET_PROPS.opnum else split_guid
    found = split(request.before, syntax)
    if found is None or len(found.rest) > MAX_SHAPE:
        return None
    shape = RequestShape(opnum, syntax, found.kind, found.at, found.rest, request.behind)
    plan = _plan_of(shape)
    return None if plan is None else (plan, found.name)


@lru_cache(maxsize=MAX_SHAPES)
def _plan_of(shape: RequestShape) -> ShapePlan | None:
    """The plan of a shape, which is decoded with another name; None if that is refused."""
    by_path = shape.opnum == dscomm.GET_PROPS.opnum
    operation = dscomm.GET_PROPS if by_path else dscomm.GET_PROPS_GUID
    found = RequestedName("", shape.kind, shape.at, shape.rest)
    stub = nameless(found, shape.syntax, by_path=by_path) + _NO_HANDLE + shape.signature_size
    try:
        request = operation.request.decode(stub, shape.syntax)
        object_type = object_type_of(request.object_type)
        read = plan_read(object_type, request.ids, request.types)
    except (WireError, DirectoryError):
        return None
    return ShapePlan(object_type, read, request.signature_size, shape.syntax)


class LookupShape(NamedTuple):
    """What lookups by other constants have in common."""

    syntax: Syntax
    head: bytes
    #: The type of the constant, if there is one at its place.
    by: type[str] | type[Guid] | None
    at: int
    rest: bytes


def plan_lookup_of(request: SplitRequest, syntax: Syntax) -> LookupPlan | None:
    """The plan of S_DSLookupBegin; None: its handler answers."""
    found = split_constant(request.before, syntax)
    if found is None or len(request.before) > MAX_SHAPE:
        return None
    value = found.constant
    by = None if value is None else type(value)
    plan = _plan_of_lookup(LookupShape(syntax, found.head, by, found.at, found.rest))
    return plan if plan is None or value is None else plan.with_constant(value)


@lru_cache(maxsize=MAX_SHAPES)
def _plan_of_lookup(shape: LookupShape) -> LookupPlan | None:
    """The plan of a shape, which is decoded with another constant; None if that is refused."""
    constant = None if shape.by is None else Guid.NULL if shape.by is Guid else ""
    found = RequestedConstant(shape.head, constant, shape.at, shape.rest)
    stub = constantless(found, shape.syntax) + _NO_HANDLE
    try:
        request = dscomm.LOOKUP_BEGIN.request.decode(stub, shape.syntax)
        plan = plan_lookup(request.restriction, request.columns, request.sort)
    except (WireError, DirectoryError):
        return None
    return plan if shape.by is None or _is_constant(request, shape.by) else None


def _is_constant(request: dscomm.LookupBegin, kind: type[str] | type[Guid]) -> bool:
    """Returns whether what was put in became the constant of the only restriction."""
    given = () if request.restriction is None else request.restriction.restrictions or ()
    if request.context is not None or len(given) != 1:
        return False
    value = given[0].prval.value
    return value == Guid.NULL if kind is Guid else isinstance(value, str) and not value.strip()
