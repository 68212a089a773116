"""Column expressions that several transforms use."""

from __future__ import annotations

from itertools import chain

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from mqis.pipeline.content import LISTED
from mqis.protocol.replication.replicated import TRAVELS_AS
from mqis.wire.mqds.objecttype import ObjectType

#: Byte ranges of a GUID's text: the first three fields are little-endian in a packet.
_FIELDS = ((4, 3, 2, 1), (6, 5), (8, 7), (9, 10), (11, 12, 13, 14, 15, 16))


def guid_text(column: Column) -> Column:
    """The text (``a1b2c3d4-0001-...``) of a GUID's sixteen packet bytes."""
    digits = F.lower(F.hex(column))
    fields = [
        F.concat(*(F.substring(digits, 2 * number - 1, 2) for number in numbers))
        for numbers in _FIELDS
    ]
    return F.concat_ws("-", *fields)


def body_octets(at: int, size: int) -> Column:
    """Bytes of the column ``body`` from an offset of ``wire.mqdsrp.layout``."""
    return F.substring("body", at + 1, size)  # SQL counts from 1


def body_number(at: int, size: int) -> Column:
    """The big-endian number that stands in ``body`` at an offset; null if it exceeds 63 bits."""
    return F.conv(F.hex(body_octets(at, size)), 16, 10).try_cast("long")


def type_label(column: Column) -> Column:
    """The name of an object type, such as ``queue``, from its number."""
    known = list(chain(*((F.lit(int(k)), F.lit(k.label)) for k in ObjectType)))
    return F.coalesce(F.create_map(*known)[column], column.cast("string"))


def listed_properties(object_type: Column) -> Column:
    """The properties that a type's digests stand for, in the digests' order."""
    pairs = [
        (F.lit(kind), F.array(*(F.lit(propid) for propid in listed)))
        for kind, listed in LISTED.items()
    ]
    return F.create_map(*chain(*pairs))[object_type]


def travels_as(propid: Column) -> Column:
    """The property that a stored one is replicated as: mostly itself."""
    pairs = [(F.lit(int(stored)), F.lit(int(sent))) for stored, sent in TRAVELS_AS.items()]
    return F.coalesce(F.create_map(*chain(*pairs))[propid], propid)


def same_name(first: Column, second: Column) -> Column:
    """True if two names are equal, ignoring case as Windows does."""
    return F.lower(first) == F.lower(second)
