"""All schemas of the pipeline.

In bronze and silver tables, a GUID is its sixteen packet bytes and a sequence number a 64-bit
integer. In gold tables, which people read, GUIDs are text. Times are microseconds in UTC.
"""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - the customary name

from mqis.wire.mqdsrp.describing import operation_name
from mqis.wire.mqdsrp.messages import MessageOperation

#: The types of columns by the words that stand for them below.
_TYPES: dict[str, T.DataType] = {
    "text": T.StringType(),
    "binary": T.BinaryType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "double": T.DoubleType(),
    "bool": T.BooleanType(),
    "time": T.TimestampType(),
    "ints": T.ArrayType(T.IntegerType()),
    "longs": T.ArrayType(T.LongType(), containsNull=False),
    "names": T.ArrayType(T.StringType(), containsNull=False),
    "texts": T.ArrayType(T.StringType()),
    "times": T.MapType(T.StringType(), T.TimestampType()),
}


def _schema(columns: str) -> T.StructType:
    """A schema from names and types of columns: ``"server text, lsn long"``."""
    pairs = (column.split() for column in columns.split(","))
    return T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in pairs])


# --- sources --------------------------------------------------------------------------------------

#: ``mqis.journal``: a whole record or, if ``error`` is set, damaged bytes.
JOURNAL = _schema(
    "server text, server_id binary, lsn long, time time, kind int, state int, operation int, "
    "object_type int, session long, partition binary, seq long, previous_seq long, "
    "object_id binary, message_source binary, message_ordinal long, peer text, reason text, "
    "body binary, file text, offset long, length long, error text"
)

#: ``mqis.segments``: a segment file. ``digest`` is the SHA-256 of all of it, ``lowest_lsn`` and
#: ``highest_lsn`` are numbers of records in it. A file whose header cannot be read has no server,
#: number, header and digest. ``snapshot`` is the file of the snapshot that the segment begins at.
_TYPES["places"] = T.ArrayType(_schema("offset long, length long, reason text"), containsNull=False)
CHECKED_SEGMENTS = _schema(
    "file text, size long, server text, server_id binary, number long, first_lsn long, "
    "lowest_lsn long, highest_lsn long, header binary, digest binary, snapshot text, "
    "snapshot_digest binary, damage places"
)
#: ``mqis.segments`` with ``rows=digests``: the SHA-256 of any files, null if one cannot be read.
DIGESTS = _schema("file text, digest binary")

#: ``mqis.directory``: one line of an export. ``digest`` covers all that replicas have to agree on,
#: ``digests`` has one for each property, in the order of ``content.LISTED``. ``own`` is true if
#: the object has a property that never travels, so that only its authority can have exported it.
DIRECTORY = _schema(
    "server text, partition binary, id binary, type int, seq long, path text, deleted bool, "
    "own bool, site_only bool, digest long, digests longs, props text, file text, offset long, "
    "error text"
)

#: ``mqis.directory`` with ``rows=partitions``: the partitions in the first lines of exports.
PARTITIONS = _schema(
    "server text, exporter text, exporter_id binary, enterprise text, partition binary, "
    "owner text, last_seq long, purged_seq long, allowed_purge_seq long, purge_state text, "
    "file text, error text"
)

#: ``mqis.directory`` with ``rows=lines``: the lines of exports unchanged, for a rebuild.
EXPORT_LINES = _schema(
    "server text, partition binary, id binary, type int, seq long, deleted bool, line text, "
    "file text, offset long, error text"
)

#: ``mqis.capture``: a captured message or, if ``error`` is set, something that cannot be read.
CAPTURE = _schema(
    "time time, frame long, source text, source_port int, destination text, "
    "destination_port int, to_server bool, transport text, carrier text, protocol text, "
    "kind text, stream long, call_id long, length long, summary text, detail text, "
    "partition binary, seq long, queue_manager binary, machines names, file text, offset long, "
    "error text"
)

# --- small inputs ---------------------------------------------------------------------------------

#: The server and the record that each file of a snapshot belongs to.
SNAPSHOT_PLACES = _schema("file text, server text, lsn long")
#: Messages between machines, by name.
MESSAGES = _schema("source text, destination text, messages double")
#: One row each: the number that made-up messages depend on, and a link that has failed.
SEED = _schema("seed int")
FAILED_LINK = _schema("failed text")
#: A finding of ``mqis estate check``, and the results of the command, one row a file. ``unknown``
#: are the checks that its source could not answer.
CHECKED_FINDING = _schema(
    "check text, entry text, detail text, symptom text, advice text, ldif text"
)
_TYPES["findings"] = T.ArrayType(CHECKED_FINDING, containsNull=False)
ESTATE_CHECKS = _schema("file text, checked time, unknown names, findings findings")

# --- bronze ---------------------------------------------------------------------------------------

RECORDS = T.StructType([field for field in JOURNAL.fields if field.name != "error"])
#: A record that is left out of ``records``, because the file ``kept`` has one of this number;
#: ``same`` if that has the same content.
REPEATS = _schema(
    "server text, server_id binary, lsn long, file text, offset long, kept text, same bool"
)
#: The exports' partitions that can be read; unreadable lines stay in ``objects``.
READ_PARTITIONS = T.StructType([field for field in PARTITIONS.fields if field.name != "error"])
#: The lines and the partitions of journals' snapshots; each is the state after record ``lsn``.
SNAPSHOTS = _schema(
    "server text, lsn long, partition binary, id binary, type int, seq long, deleted bool, "
    "line text, file text"
)
SNAPSHOT_PARTITIONS = T.StructType([*READ_PARTITIONS.fields, T.StructField("lsn", T.LongType())])
ERRORS = _schema("source text, server text, file text, offset long, length long, reason text")

#: The segment files as they were read: without what other files tell.
READ_SEGMENTS = T.StructType(
    [field for field in CHECKED_SEGMENTS.fields if field.name != "snapshot_digest"]
)
#: The segment files of journals; ``kept`` names the file that is read instead of a copy.
SEGMENTS = T.StructType(
    [field for field in CHECKED_SEGMENTS.fields if field.name != "snapshot"]
    + [T.StructField("kept", T.StringType())]
)
#: The segments to which nothing is added any more, as they were when they were first read.
SEALED_SEGMENTS = _schema(
    "server text, server_id binary, number long, first_lsn long, file text, digest binary"
)
COPIES = _schema("file text, kept text")
#: The inventory of journals, one row a server; ``complete`` if no record from 1 on is missing and
#: nothing was changed. ``signature`` is valid, wrong, unchecked or unsigned.
JOURNALS = _schema(
    "server text, server_id binary, segments long, first long, last long, records long, "
    "began time, ended time, complete bool, signature text"
)
#: What limits the input as evidence. ``first`` and ``last`` are record numbers of a journal, if
#: there is a ``partition`` sequence numbers, and for findings about the chain numbers of segments.
EVIDENCE = _schema(
    "kind text, server text, file text, partition text, first long, last long, explanation text"
)

# --- silver ---------------------------------------------------------------------------------------

#: A property's value: ``text`` for strings, GUIDs and lists, ``number`` for numbers, ``raw``
#: always.
PROPERTY = _schema("propid int, text text, number long, raw binary")
_TYPES["properties"] = T.ArrayType(PROPERTY, containsNull=False)

#: A change decoded from a body, either of a message or of a local record.
CARRIED = _schema(
    "server text, lsn long, time time, state int, peer text, message_source binary, "
    "message_ordinal long, operation int, command int, partition binary, seq long, "
    "previous_seq long, purged_seq long, object_id binary, object_type int, path text, "
    "properties properties, reached_seq long, error text"
)

#: The columns of a change that folding needs.
_TYPES["values"] = T.ArrayType(_schema("propid int, raw binary"))
FOLDED = _schema(
    "partition binary, seq long, command int, object_id binary, object_type int, properties values"
)

#: An object as its authority's journal has it; ``journaled`` are its digests, null if deleted.
JOURNALED_STATE = _schema("partition binary, type int, id binary, journaled longs")

#: The network as ``transforms.network`` packs it, with the numbers of its sites and of its links
#: and gates that may fail.
NETWORK = _schema("sites int, failures int, packed text")

#: A rebuilt export: ``place`` and ``key`` give the order of its lines.
LINES = _schema("partition binary, at long, seq long, place int, key binary, line text")

#: A claim of one object, in the order of ``protocol.hygiene.claims.Claim``.
CLAIMS = _schema("key text, kind int, check text, type text, id text, path text, detail text")

#: A fault of an Active Directory; ``state`` is open, mended, or unknown to the newest check.
ESTATE = _schema(
    "check text, entry text, state text, detail text, symptom text, advice text, ldif text, "
    "first_found time, last_found time, times_found long"
)
#: A change that an authority made; ``had`` maps servers to the times when they applied it.
CHANGES = _schema(
    "partition text, seq long, previous_seq long, id text, type text, operation text, path text, "
    "properties properties, origin text, time time, had times"
)
#: A version of an object, valid until the next change of it.
VERSIONS = _schema(
    "partition text, id text, type text, operation text, valid_from_seq long, valid_to_seq long, "
    "valid_from time, valid_to time, properties properties"
)

# --- gold -----------------------------------------------------------------------------------------

#: A difference of a replica from its authority, and the step at which the change got lost.
DIVERGENCE = _schema(
    "server text, authority text, partition text, id text, type text, path text, "
    "difference text, properties ints, cause text, reason text, seq long, source text, "
    "target text, authority_seq long, replica_seq long"
)
LAG = _schema(
    "origin text, server text, changes long, p50_ms double, p95_ms double, p99_ms double, "
    "max_ms double"
)
LAG_BY_MINUTE = _schema("minute time, server text, changes long, p50_ms double, p95_ms double")
GAPS = _schema(
    "kind text, server text, partition text, first_seq long, last_seq long, times long, "
    "certain bool"
)
#: The messages of each kind that a server queued for a peer, and the synchronisations it completed.
ROUNDS = _schema(
    "server text, peer text, "
    + "".join(f"{operation_name(operation)} long, " for operation in MessageOperation)
    + "sync0_request long, sync_rounds long, sync0_rounds long, parts long, bytes long"
)
MARGINS = _schema(
    "authority text, partition text, psc text, last_seq long, purged_seq long, acked_seq long, "
    "behind long, margin long, purge_state text"
)
#: The current directory, each object once.
CURRENT = _schema(
    "authority text, server text, partition text, id text, type text, seq long, path text, "
    "props text"
)

#: A fault of the directory; ``check`` is the name of a rule of ``protocol.hygiene``.
HYGIENE = _schema("check text, explanation text, type text, id text, path text, detail text")
#: The checks whose findings missing exports may explain.
UNCERTAIN = _schema("check text")
#: Something that the exports cannot show; ``check`` is null if it limits several checks.
HYGIENE_LIMITS = _schema("check text, reason text, advice text, left_out long")
ROUTES = _schema("source text, destination text, cost long, next_hop text, path texts")
#: ``changed`` and ``cut_off`` count pairs of sites. ``dearer_by`` is the added cost of all pairs,
#: ``worst`` that of the pair with the highest.
WHAT_IF = _schema("kind text, name text, changed long, cut_off long, dearer_by long, worst long")
#: ``kind`` is link, gate or undeliverable.
LOADS = _schema("kind text, name text, messages double")
#: ``messages_after`` is the load after the link ``failed`` has failed.
TRAFFIC = _schema("kind text, name text, messages double, messages_after double, failed text")
#: The captured messages of one protocol between a client and a port of a server.
CONVERSATIONS = _schema(
    "client text, server text, port int, transport text, carrier text, protocol text, "
    "streams long, messages long, bytes long, errors long, first time, last time"
)
