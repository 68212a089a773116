"""Column expressions that several transforms use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from mqis.pipeline.content import LISTED
from mqis.protocol.replication.replicated import TRAVELS_AS
from mqis.wire.mqds.objecttype import ObjectType

ColumnOrName = Column | str

#: Byte ranges of a GUID's text: the first three fields are little-endian in a packet.
_FIELDS = ((4, 3, 2, 1), (6, 5), (8, 7), (9, 10), (11, 12, 13, 14, 15, 16))


def shaped(frame: DataFrame, names: Iterable[str], **made: Column) -> DataFrame:
    """The columns of these names: those that are given as ``made``, the others unchanged."""
    return frame.select(*(made[name].alias(name) if name in made else name for name in names))


def gathered(frame: DataFrame) -> DataFrame:
    """Lets Spark write rows to few files, one if they are few, whatever number of tasks made them.

    The rows move once more; ``coalesce`` would move the work that makes them into one task.
    """
    return frame.hint("rebalance")


def lookup(known: Mapping[Any, object]) -> Column:
    """A dictionary as a column, for looking up the values of other columns."""
    return F.create_map(*map(F.lit, chain.from_iterable(known.items())))


def guid_text(column: ColumnOrName) -> Column:
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


def word(column: Column, words: Mapping[int, str]) -> Column:
    """The word for a number; the number itself if there is none."""
    return F.coalesce(lookup(words)[column], column.cast("string"))


def type_label(column: ColumnOrName) -> Column:
    """The name of an object type, such as ``queue``, from its number."""
    number = F.col(column) if isinstance(column, str) else column
    return word(number, {int(kind): kind.label for kind in ObjectType})


def listed_properties(object_type: Column) -> Column:
    """The properties that a type's digests stand for, in the digests' order."""
    return lookup({kind: list(listed) for kind, listed in LISTED.items()})[object_type]


def travels_as(propid: Column) -> Column:
    """The property that a stored one is replicated as: mostly itself."""
    known = {int(stored): int(sent) for stored, sent in TRAVELS_AS.items()}
    return F.coalesce(lookup(known)[propid], propid)


def same_name(first: str, second: str) -> Column:
    """True if two names are equal, ignoring case as Windows does."""
    return F.lower(first) == F.lower(second)
