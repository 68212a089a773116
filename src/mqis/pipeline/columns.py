"""What the columns of the tables mean: the comments that Spark, catalogues and docs/tables.md show.

A word stands for the columns of that name in all tables; ``table.column`` for one that means
something else there. A test fails for a column without a comment, and for a comment without one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructField, StructType

COMMENTS: dict[str, str] = {
    # --- where a row comes from ---
    "file": "the file that the row was read from",
    "offset": "the first byte of the row in the file",
    "length": "the bytes that the row takes in the file",
    "error": "why the row could not be read; null if it could",
    "server": "the name of the server whose journal, directory or copy this is",
    "server_id": "the identifier of the server",
    "packets.length": "the bytes of the message",
    "errors.source": "the source that could not read it",
    "errors.reason": "why it could not be read",
    "errors.length": "the bytes that could not be read",
    "errors.server": "the server whose file it is, if that is known",
    "snapshot_errors.source": "snapshot",
    "snapshot_errors.reason": "why it could not be read",
    "snapshot_errors.length": "the bytes that could not be read; not known",
    "snapshot_errors.server": "the server in whose journal's directory the file is",
    # --- segments, journals, evidence ---
    "size": "the bytes of the file",
    "number": "the number of the segment in its journal",
    "first_lsn": "the number of the first record, by the header",
    "lowest_lsn": "the lowest number of a record in the file",
    "highest_lsn": "the highest number of a record in the file",
    "header": "the header as it stands in the file",
    "digest": "the SHA-256 of the whole file",
    "snapshot_digest": "the SHA-256 of the snapshot that the segment begins with, by its header",
    "damage": "the places that cannot be read: offset, length and reason",
    "snapshot": "the file of the snapshot that the segment begins with, by its header",
    "segments.kept": "the file that is read instead of this copy; null if this one is read",
    "repeats.kept": "the file whose record of this number is in the table records",
    "same": "true if both records have the same content",
    "segments": "the number of segments",
    "journals.first": "the number of the first record",
    "journals.last": "the number of the last record",
    "journals.records": "the number of records",
    "began": "the time of the first record, in UTC",
    "ended": "the time of the last record, in UTC",
    "complete": "true if no record is missing and nothing was changed",
    "signature": "whether and how the journal is signed",
    "evidence.kind": "what is wrong with the journals or exports",
    "evidence.first": "the first number that it concerns; null if it concerns none",
    "evidence.last": "the last number that it concerns",
    "explanation": "what it means, in one sentence",
    # --- records ---
    "lsn": "the number of the record in its server's journal",
    "snapshots.lsn": "the record after which the snapshot was taken",
    "snapshot_partitions.lsn": "the record after which the snapshot was taken",
    "time": "when the server wrote the record, in UTC by its clock",
    "records.kind": "1: a message, 2: a change",
    "state": "what became of it: local, queued, written, acknowledged, expired and so on",
    "records.operation": "of a message its operation, of a change its command, as numbers",
    "operation": "create, update or delete",
    "object_type": "the type of the object, as MS-MQDS numbers them",
    "session": "the session between queue managers that carried the message; 0 for none",
    "partition": "the identifier of the partition",
    "seq": "the sequence number in the partition",
    "previous_seq": "the sequence number of the change before in the partition",
    "object_id": "the identifier of the object",
    "message_source": "the server that sent the message",
    "message_ordinal": "the number of the message at its sender",
    "records.peer": "the other server of the message; of a change, who asked for it",
    "records.reason": "why it was refused or dropped",
    "body": "the change or message, encoded as it was sent",
    # --- objects ---
    "id": "the identifier of the object",
    "type": "the type of the object",
    "path": "the name of the object",
    "deleted": "true for a tombstone",
    "own": "true if the object has a property that never travels: its authority exported it",
    "site_only": "true for a queue that only its own site knows",
    "objects.digest": "a digest of all that replicas have to agree on",
    "digests": "a digest of each property that replicas have to agree on",
    "props": "the properties, as JSON",
    "line": "the line of the export, unchanged",
    "authority": "the server that may change the partition",
    "directory.server": "the server whose copy the row is from",
    "properties": "the properties of the change: number, text, number or bytes of each",
    "divergence.properties": "the numbers of the properties that differ",
    # --- partitions ---
    "exporter": "the server that made the export",
    "exporter_id": "the identifier of that server",
    "enterprise": "the name of the enterprise",
    "owner": "the name of the partition's authority",
    "last_seq": "the last sequence number that the server has",
    "purged_seq": "tombstones up to this number are purged",
    "allowed_purge_seq": "tombstones up to this number may be purged",
    "purge_state": "whether the copy is whole, or is being synchronised",
    "margins.last_seq": "the last sequence number of the authority",
    "psc": "the site's controller that acknowledges",
    "acked_seq": "the number that the controller has acknowledged",
    "behind": "how far the controller's acknowledgement is behind the authority",
    "margin": "how far the purged number is below the acknowledged one",
    # --- traffic that was captured ---
    "packets.time": "when the message was captured, in UTC by the clock of that computer",
    "frame": "the number of the packet in the capture",
    "packets.source": "the address that sent it",
    "source_port": "the port that it was sent from",
    "packets.destination": "the address that it was sent to",
    "destination_port": "the port that it was sent to",
    "to_server": "true if it goes to the server",
    "transport": "tcp or udp",
    "carrier": "the protocol that carries it",
    "protocol": "the protocol of the message",
    "packets.kind": "the kind of message",
    "stream": "the number of the connection in the capture",
    "call_id": "the number of the call in its connection",
    "summary": "the message in a line",
    "packets.detail": "the decoded message, as JSON",
    "queue_manager": "the queue manager that it names",
    "machines": "the machines that it names",
    "client": "the host that opened the connections",
    "conversations.server": "the host that accepted them",
    "port": "the port of the server",
    "streams": "the number of connections",
    "conversations.messages": "the number of messages",
    "bytes": "the number of bytes",
    "errors": "the number of messages that could not be decoded",
    "conversations.first": "when the first message was captured, in UTC",
    "conversations.last": "when the last message was captured, in UTC",
    # --- findings ---
    "check": "the name of the check",
    "hygiene.detail": "what is wrong with this object",
    "hygiene_limits.reason": "what the exports cannot show",
    "advice": "what to do",
    "left_out": "the findings that were possible, but are not told for this reason",
    "entry": "the entry of Active Directory",
    "estate.state": "open, mended or unknown",
    "estate.detail": "what is wrong with this entry",
    "symptom": "what users see because of it",
    "ldif": "the change that mends it; null if there is none",
    "first_found": "when it was found first, in UTC",
    "last_found": "when it was found last, in UTC",
    "times_found": "how often it was found",
    # --- changes, versions, replicas ---
    "origin": "the server that made the change",
    "changes.time": "when the authority made the change, in UTC by its clock",
    "had": "when each server had the change, in UTC by its clock",
    "valid_from_seq": "the sequence number that made the version",
    "valid_to_seq": "the sequence number that ended it; null for the present one",
    "valid_from": "when the version was made, in UTC",
    "valid_to": "when it ended, in UTC; null for the present one",
    "difference": "whether the replica lacks the object, has one too many, or other values",
    "cause": "the kind of cause",
    "divergence.reason": "the cause in a sentence",
    "divergence.seq": "the change that was not applied; null if it is not known",
    "divergence.source": "the server that sent, or should have sent, the change",
    "target": "the server at which the difference arose",
    "authority_seq": "the sequence number of the authority's object",
    "replica_seq": "the sequence number of the replica's object",
    "gaps.kind": "whether the numbers were skipped, or applied more than once",
    "first_seq": "the first of the sequence numbers",
    "gaps.last_seq": "the last of the sequence numbers",
    "times": "how often the change was applied; 0 if never",
    "certain": "true if the server's journal is complete",
    "changes": "the number of changes",
    "p50_ms": "the median, in milliseconds",
    "p95_ms": "95 of 100 were faster, in milliseconds",
    "p99_ms": "99 of 100 were faster, in milliseconds",
    "max_ms": "the slowest, in milliseconds",
    "minute": "the minute in which the changes were made, in UTC",
    "rounds.peer": "the other server",
    "change_propagation": "the number of propagated changes",
    "change_request": "the number of requests to change an object",
    "sync_request": "the number of requests to synchronise",
    "sync_reply": "the number of parts of replies to them",
    "change_reply": "the number of answers to requests to change an object",
    "already_purged": "the number of answers that what was asked for is purged",
    "psc_ack": "the number of acknowledgements of site controllers",
    "bsc_ack": "the number of acknowledgements of backup controllers",
    "sync0_request": "the number of requests for a full resynchronisation",
    "sync_rounds": "the number of completed synchronisations",
    "sync0_rounds": "the number of completed full resynchronisations",
    "parts": "the number of parts of replies that were not the last one",
    "rounds.bytes": "the bytes of the bodies of these messages",
    # --- routes ---
    "routes.source": "the site that sends",
    "routes.destination": "the site that receives",
    "cost": "the sum of the costs of the links on the way",
    "next_hop": "the site to which the messages go first",
    "routes.path": "the sites on the way",
    "what_if.kind": "link or gate",
    "traffic.kind": "link or gate",
    "name": "the link, by its sites, or the gate",
    "changed": "the pairs of sites whose route is another one if it fails",
    "cut_off": "the pairs of sites that have no route if it fails",
    "dearer_by": "the sum by which routes cost more if it fails",
    "worst": "the greatest sum by which one route costs more",
    "traffic.messages": "the messages that go over it",
    "messages_after": "the messages that go over it when the link of the column failed has failed",
    "failed": "the link that has failed; null if none has",
}


def comment_of(table: str, column: str) -> str:
    """What a column means; empty if nobody has said it."""
    return COMMENTS.get(f"{table}.{column}", COMMENTS.get(column, ""))


def commented(table: str, schema: StructType) -> StructType:
    """The schema with its comments, where Spark keeps them."""
    return StructType([
        StructField(
            each.name, each.dataType, each.nullable, {"comment": comment_of(table, each.name)}
        )
        for each in schema
    ])  # fmt: skip


def described(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with the comments of a schema: files and catalogues keep them with the table."""
    kept = {each.name: each.metadata for each in schema}
    return frame.select(
        *(F.col(f"`{name}`").alias(name, metadata=kept.get(name, {})) for name in frame.columns)
    )
