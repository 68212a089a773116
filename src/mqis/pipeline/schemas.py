"""All schemas of the pipeline.

In bronze and silver tables, a GUID is its sixteen packet bytes and a sequence number a 64-bit
integer. In gold tables, which people read, GUIDs are text. Times are microseconds in UTC.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_BINARY, _TEXT, _INT, _LONG = BinaryType(), StringType(), IntegerType(), LongType()
_TIME, _BOOL = TimestampType(), BooleanType()


def _schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


# --- sources --------------------------------------------------------------------------------------

#: ``mqis.journal``: a whole record or, if ``error`` is set, damaged bytes.
JOURNAL = _schema(
    server=_TEXT,
    server_id=_BINARY,
    lsn=_LONG,
    time=_TIME,
    kind=_INT,
    state=_INT,
    operation=_INT,
    object_type=_INT,
    session=_LONG,
    partition=_BINARY,
    seq=_LONG,
    previous_seq=_LONG,
    object_id=_BINARY,
    message_source=_BINARY,
    message_ordinal=_LONG,
    peer=_TEXT,
    reason=_TEXT,
    body=_BINARY,
    file=_TEXT,
    offset=_LONG,
    length=_LONG,
    error=_TEXT,
)

#: ``mqis.segments``: a segment file. ``digest`` is the SHA-256 of all of it. A file whose header
#: cannot be read has no server, number, header and digest.
CHECKED_SEGMENTS = _schema(
    file=_TEXT,
    size=_LONG,
    server=_TEXT,
    server_id=_BINARY,
    number=_LONG,
    first_lsn=_LONG,
    header=_BINARY,
    digest=_BINARY,
    snapshot_digest=_BINARY,
    damage=ArrayType(_schema(offset=_LONG, length=_LONG, reason=_TEXT), containsNull=False),
)

#: ``mqis.directory``: one line of an export. ``digest`` covers all that replicas have to agree on,
#: ``digests`` has one for each property, in the order of ``content.LISTED``. ``own`` is true if
#: the object has a property that never travels, so that only its authority can have exported it.
DIRECTORY = _schema(
    server=_TEXT,
    partition=_BINARY,
    id=_BINARY,
    type=_INT,
    seq=_LONG,
    path=_TEXT,
    deleted=_BOOL,
    own=_BOOL,
    site_only=_BOOL,
    digest=_LONG,
    digests=ArrayType(_LONG, containsNull=False),
    props=_TEXT,
    file=_TEXT,
    offset=_LONG,
    error=_TEXT,
)

#: ``mqis.directory`` with ``rows=partitions``: the partitions in the first lines of exports.
PARTITIONS = _schema(
    server=_TEXT,
    enterprise=_TEXT,
    partition=_BINARY,
    owner=_TEXT,
    last_seq=_LONG,
    purged_seq=_LONG,
    allowed_purge_seq=_LONG,
    purge_state=_TEXT,
    file=_TEXT,
    error=_TEXT,
)

#: ``mqis.directory`` with ``rows=lines``: the lines of exports unchanged, for a rebuild.
EXPORT_LINES = _schema(
    server=_TEXT,
    partition=_BINARY,
    id=_BINARY,
    type=_INT,
    seq=_LONG,
    deleted=_BOOL,
    line=_TEXT,
    file=_TEXT,
    offset=_LONG,
    error=_TEXT,
)

#: ``mqis.capture``: a captured message or, if ``error`` is set, something that cannot be read.
CAPTURE = _schema(
    time=_TIME,
    frame=_LONG,
    source=_TEXT,
    source_port=_INT,
    destination=_TEXT,
    destination_port=_INT,
    to_server=_BOOL,
    transport=_TEXT,
    carrier=_TEXT,
    protocol=_TEXT,
    kind=_TEXT,
    stream=_LONG,
    call_id=_LONG,
    length=_LONG,
    summary=_TEXT,
    detail=_TEXT,
    partition=_BINARY,
    seq=_LONG,
    queue_manager=_BINARY,
    machines=ArrayType(_TEXT, containsNull=False),
    file=_TEXT,
    offset=_LONG,
    error=_TEXT,
)

# --- bronze ---------------------------------------------------------------------------------------

RECORDS = StructType([field for field in JOURNAL.fields if field.name != "error"])
ERRORS = _schema(source=_TEXT, server=_TEXT, file=_TEXT, offset=_LONG, length=_LONG, reason=_TEXT)

#: The segment files of journals; ``kept`` names the file that is read instead of a copy.
SEGMENTS = StructType([*CHECKED_SEGMENTS.fields, StructField("kept", _TEXT)])
#: The inventory of journals, one row a server; ``complete`` if no record from 1 on is missing and
#: nothing was changed. ``signature`` is valid, wrong, unchecked or unsigned.
JOURNALS = _schema(
    server=_TEXT,
    server_id=_BINARY,
    segments=_LONG,
    first=_LONG,
    last=_LONG,
    records=_LONG,
    began=_TIME,
    ended=_TIME,
    complete=_BOOL,
    signature=_TEXT,
)
#: What limits the input as evidence. ``first`` and ``last`` are record numbers of a journal, if
#: there is a ``partition`` sequence numbers, and for findings about the chain numbers of segments.
EVIDENCE = _schema(
    kind=_TEXT,
    server=_TEXT,
    file=_TEXT,
    partition=_TEXT,
    first=_LONG,
    last=_LONG,
    explanation=_TEXT,
)

# --- silver ---------------------------------------------------------------------------------------

#: A property's value: ``text`` for strings, GUIDs and lists, ``number`` for numbers, ``raw``
#: always.
PROPERTY = _schema(propid=_INT, text=_TEXT, number=_LONG, raw=_BINARY)

#: A change decoded from a body, either of a message or of a local record.
CARRIED = _schema(
    server=_TEXT,
    lsn=_LONG,
    time=_TIME,
    state=_INT,
    peer=_TEXT,
    message_source=_BINARY,
    message_ordinal=_LONG,
    operation=_INT,
    command=_INT,
    partition=_BINARY,
    seq=_LONG,
    previous_seq=_LONG,
    purged_seq=_LONG,
    object_id=_BINARY,
    object_type=_INT,
    path=_TEXT,
    properties=ArrayType(PROPERTY, containsNull=False),
    reached_seq=_LONG,
    error=_TEXT,
)

#: The columns of a change that folding needs.
FOLDED = _schema(
    partition=_BINARY,
    seq=_LONG,
    command=_INT,
    object_id=_BINARY,
    object_type=_INT,
    properties=ArrayType(_schema(propid=_INT, raw=_BINARY)),
)

#: An object as its authority's journal has it; ``journaled`` are its digests, null if deleted.
JOURNALED_STATE = _schema(
    partition=_BINARY, id=_BINARY, journaled=ArrayType(_LONG, containsNull=False)
)

#: A rebuilt export: ``place`` and ``key`` give the order of its lines.
LINES = _schema(partition=_BINARY, at=_LONG, seq=_LONG, place=_INT, key=_BINARY, line=_TEXT)

#: A claim of one object, in the order of ``protocol.hygiene.claims.Claim``.
CLAIMS = _schema(key=_TEXT, kind=_INT, check=_TEXT, type=_TEXT, id=_TEXT, path=_TEXT, detail=_TEXT)

# --- gold -----------------------------------------------------------------------------------------

#: A fault of the directory; ``check`` is the name of a rule of ``protocol.hygiene``.
HYGIENE = _schema(check=_TEXT, explanation=_TEXT, type=_TEXT, id=_TEXT, path=_TEXT, detail=_TEXT)
#: Something that the exports cannot show; ``check`` is null if it limits several checks.
HYGIENE_LIMITS = _schema(check=_TEXT, reason=_TEXT, advice=_TEXT, left_out=_LONG)
ROUTES = _schema(source=_TEXT, destination=_TEXT, cost=_LONG, next_hop=_TEXT, path=ArrayType(_TEXT))
#: ``changed`` and ``cut_off`` count pairs of sites. ``dearer_by`` is the added cost of all pairs,
#: ``worst`` that of the pair with the highest.
WHAT_IF = _schema(
    kind=_TEXT, name=_TEXT, changed=_LONG, cut_off=_LONG, dearer_by=_LONG, worst=_LONG
)
#: ``kind`` is link, gate or undeliverable.
LOADS = _schema(kind=_TEXT, name=_TEXT, messages=DoubleType())
