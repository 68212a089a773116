"""Every metric that a server exports: its name, its labels, and what it tells.

docs/metrics.md and the dashboard are made from this. A number of a server that replicates names its
source here; the readers beside this module give the other values. Labels are names of this
enterprise's servers and sites, or words of this software: there are never more of them than there
are servers, sites, operations or kinds of errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mqis.runtime.histogram import Histogram
from mqis.server.replication import ReplicationService

#: Reads the value of a metric without labels from a server that replicates.
Read = Callable[[ReplicationService], float]


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """``name`` without the suffixes that counters and histograms get."""

    group: str
    kind: Kind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    #: None: a reader in ``values`` or ``replicating`` gives the samples.
    read: Read | None = None

    @property
    def exported(self) -> str:
        """As queries name it; of a histogram, what its three series begin with."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name


#: The values of one metric: labels, in the order of the metric's, and what was counted.
Samples = list[tuple[tuple[str, ...], float | Histogram]]


def alone(value: float) -> Samples:
    """Of a metric without labels."""
    return [((), value)]


_all: list[Metric] = []


def _metric(
    group: str, kind: Kind, name: str, help_: str, *labels: str, read: Read | None = None
) -> Metric:
    metric = Metric(group, kind, f"mqis_{name}", help_, labels, read)
    _all.append(metric)
    return metric


def _gauge(group: str, name: str, help_: str, *labels: str) -> Metric:
    return _metric(group, Kind.GAUGE, name, help_, *labels)


def _counter(group: str, name: str, help_: str, *labels: str, read: Read | None = None) -> Metric:
    return _metric(group, Kind.COUNTER, name, help_, *labels, read=read)


def _histogram(group: str, name: str, help_: str, *labels: str) -> Metric:
    return _metric(group, Kind.HISTOGRAM, name, help_, *labels)


# --- the server -----------------------------------------------------------------------------------

_SERVER = "Server"
BUILD = _gauge(_SERVER, "build_info", "Always 1; the labels tell what runs.", "version", "python")
SERVER = _gauge(
    _SERVER,
    "server_info",
    "Always 1; the labels tell which server it is.",
    *("server", "role", "site", "enterprise"),
)
SERVING = _gauge(_SERVER, "server_serving", "1 if clients are served, 0 while it starts.")

# --- RPC ------------------------------------------------------------------------------------------

_RPC = "RPC"
_CALL = ("endpoint", "interface", "operation")
CALLS = _counter(_RPC, "rpc_calls", "Calls that were run.", *_CALL)
CALL_DURATION = _histogram(
    _RPC,
    "rpc_call_duration_seconds",
    "Calls from dispatch to answer: all that wait for something, one in eight of the others.",
    *_CALL,
)
CALL_FAILURES = _counter(
    _RPC,
    "rpc_call_failures",
    "Calls whose result was an error, by the name of the HRESULT.",
    *(*_CALL, "result"),
)
FAULTS = _counter(
    _RPC, "rpc_faults", "Calls answered by a fault, by its status.", "endpoint", "status"
)
CONNECTIONS = _gauge(_RPC, "rpc_connections", "Open connections.", "endpoint")
CONNECTIONS_ACCEPTED = _counter(
    _RPC, "rpc_connections_accepted", "Connections that were taken.", "endpoint"
)
CONNECTIONS_REFUSED = _counter(
    _RPC,
    "rpc_connections_refused",
    "Connections that were not taken, for their number or for what came over them.",
    "endpoint",
)
CALLBACKS = _counter(
    _RPC, "rpc_callbacks", "Calls that the server made to its clients.", "endpoint"
)
LOGONS = _counter(_RPC, "authentication_attempts", "Logons that were begun.")
LOGON_FAILURES = _counter(_RPC, "authentication_failures", "Logons that failed.")
LOGONS_UNJUDGED = _counter(
    _RPC,
    "authentication_unjudged",
    "Of these, logons that came while their account or address had to wait.",
)
DENIALS = _counter(_RPC, "access_denied", "Calls that access checks refused.")

# --- the store ------------------------------------------------------------------------------------

_STORE = "Store"
COMMITS = _counter(_STORE, "store_commits", "Commits, each for all operations that waited.")
COMMIT_FAILURES = _counter(_STORE, "store_commit_failures", "Commits that failed.")
OPERATIONS = _counter(_STORE, "store_operations", "Operations that were run.")
WAITING_OPERATIONS = _gauge(
    _STORE, "store_waiting_operations", "Operations that wait for a commit."
)
COMMIT_OPERATIONS = _histogram(
    _STORE, "store_commit_operations", "Operations that shared a commit."
)
FLUSH_DURATION = _histogram(
    _STORE, "store_flush_duration_seconds", "Commits, from the last operation until it is durable."
)

# --- replication ----------------------------------------------------------------------------------

_REPLICATION = "Replication"
PARTITION_LAST = _gauge(
    _REPLICATION,
    "partition_last_sequence",
    "The last sequence number that is here. The authority's less a replica's is its lag.",
    "partition",
)
PARTITION_PURGED = _gauge(
    _REPLICATION, "partition_purged_sequence", "Up to here tombstones are gone.", "partition"
)
PARTITION_AUTHORITY = _gauge(
    _REPLICATION, "partition_authority", "1 if this server is the authority.", "partition"
)
PARTITION_MISSING = _gauge(
    _REPLICATION,
    "partition_missing_changes",
    "Changes that were heard of and are not here, and objects that were set aside.",
    "partition",
)
PARTITION_SYNCHRONIZING = _gauge(
    _REPLICATION,
    "partition_synchronizing",
    "1 while a request for changes is open, or a full synchronisation or a restore runs.",
    "partition",
)
LAG_CHANGES = _gauge(
    _REPLICATION,
    "replication_lag_changes",
    "Changes of an own partition that the neighbour is not known to have.",
    *("partition", "neighbour"),
)
LAG_SECONDS = _gauge(
    _REPLICATION,
    "replication_lag_seconds",
    "The age of the oldest of them; 0 if there are none.",
    *("partition", "neighbour"),
)
NEIGHBOUR_CONNECTED = _gauge(
    _REPLICATION,
    "replication_neighbour_connected",
    "1 if there is a session with the neighbour, in either direction.",
    "neighbour",
)
WAITING_CHANGES = _gauge(
    _REPLICATION,
    "replication_waiting_changes",
    "Changes that no message to the neighbour carries yet.",
    "neighbour",
)
CHANGES = _counter(
    _REPLICATION,
    "replication_changes",
    "Changes by origin: own (asked for here), requested (asked for at another server), applied "
    "(made by another authority).",
    "origin",
)
SYNC_REQUESTS = _counter(
    _REPLICATION,
    "replication_sync_requests",
    "Requests for missing changes, repetitions included.",
    read=lambda service: service.driver.node.replication.counters.sync_requests,
)
SYNC_ROUNDS = _counter(
    _REPLICATION,
    "replication_sync_rounds",
    "Replies to such requests that were taken.",
    read=lambda service: service.driver.node.replication.counters.sync_replies,
)
SYNCS_SERVED = _counter(
    _REPLICATION,
    "replication_syncs_served",
    "Requests for missing changes that were answered.",
    read=lambda service: service.driver.node.replication.counters.syncs_served,
)
SYNC0_ROUNDS = _counter(
    _REPLICATION,
    "replication_sync0_rounds",
    "Full synchronisations of a partition that began.",
    read=lambda service: service.driver.node.replication.counters.sync0_started,
)
SYNC0_COMPLETED = _counter(
    _REPLICATION,
    "replication_sync0_completed",
    "Full synchronisations that came to their end.",
    read=lambda service: service.driver.node.replication.counters.sync0_completed,
)
REFUSALS = _counter(
    _REPLICATION,
    "replication_refusals",
    "Messages, or changes in them, that were not taken.",
    "reason",
)
FORWARDED = _counter(
    _REPLICATION,
    "replication_forwarded_changes",
    "Changes that another authority was asked for.",
    read=lambda service: service.driver.statistics.forwarded,
)
FORWARD_FAILURES = _counter(
    _REPLICATION,
    "replication_forward_failures",
    "Those of them that it did not make.",
    read=lambda service: service.driver.statistics.forward_failures,
)
FORWARD_TIMEOUTS = _counter(
    _REPLICATION,
    "replication_forward_timeouts",
    "Those of them that nobody answered in time.",
    read=lambda service: service.driver.statistics.forward_timeouts,
)
FORWARD_DURATION = _histogram(
    _REPLICATION, "replication_forward_duration_seconds", "Such changes, until the answer came."
)
RELAYED_REQUESTS = _counter(
    _REPLICATION,
    "replication_relayed_requests",
    "Requests of backup controllers that were passed on to an authority.",
    read=lambda service: service.driver.node.replication.counters.relayed_requests,
)
UNANSWERED_REQUESTS = _counter(
    _REPLICATION,
    "replication_unanswered_requests",
    "Own and passed-on requests that were given up.",
    read=lambda service: service.driver.node.replication.counters.unanswered_requests,
)
RESTARTS = _counter(
    _REPLICATION,
    "replication_restarts",
    "How often replication began anew from the store.",
    read=lambda service: service.driver.statistics.restarts,
)

# --- transport ------------------------------------------------------------------------------------

_TRANSPORT = "Transport"
SESSIONS = _gauge(_TRANSPORT, "transport_sessions", "Open sessions with queue managers.")
SESSIONS_OPENED = _counter(
    _TRANSPORT,
    "transport_sessions_opened",
    "Sessions that were opened.",
    read=lambda service: service.driver.node.queue.statistics.sessions,
)
TRANSPORT_REFUSED = _counter(
    _TRANSPORT,
    "transport_connections_refused",
    "Connections for which there was no room.",
    read=lambda service: service.driver.node.queue.statistics.refused_connections,
)
SENT = _counter(
    _TRANSPORT,
    "transport_messages_sent",
    "Messages sent, repetitions included.",
    read=lambda service: service.driver.node.queue.statistics.sent,
)
ACKNOWLEDGED = _counter(
    _TRANSPORT,
    "transport_messages_acknowledged",
    "Messages that the other side has.",
    read=lambda service: service.driver.node.queue.statistics.acknowledged,
)
RECEIVED = _counter(
    _TRANSPORT,
    "transport_messages_received",
    "Messages received.",
    read=lambda service: service.driver.node.queue.statistics.received,
)
DUPLICATES = _counter(
    _TRANSPORT,
    "transport_messages_duplicate",
    "Messages that came again and were dropped.",
    read=lambda service: service.driver.node.queue.statistics.duplicates,
)
REFUSED = _counter(
    _TRANSPORT,
    "transport_messages_refused",
    "Messages that were dropped for another reason, such as their signature.",
    read=lambda service: (
        service.driver.node.queue.statistics.refused
        - service.driver.node.queue.statistics.duplicates
    ),
)
EXPIRED = _counter(
    _TRANSPORT,
    "transport_messages_expired",
    "Own messages whose time ran out before they arrived.",
    read=lambda service: service.driver.node.queue.statistics.expired,
)
UNDELIVERED = _counter(
    _TRANSPORT,
    "transport_messages_undelivered",
    "Own messages that did not arrive, those included.",
    read=lambda service: service.driver.node.queue.statistics.undelivered,
)
SENT_BYTES = _counter(
    _TRANSPORT,
    "transport_sent_bytes",
    "Bytes sent to queue managers.",
    read=lambda service: service.driver.node.queue.statistics.bytes_sent,
)
RECEIVED_BYTES = _counter(
    _TRANSPORT,
    "transport_received_bytes",
    "Bytes received from them.",
    read=lambda service: service.driver.node.queue.statistics.bytes_received,
)
QUEUE_MESSAGES = _gauge(
    _TRANSPORT,
    "transport_queue_messages",
    "Messages that wait for a neighbour or for its acknowledgement; other: for all other machines.",
    "peer",
)
QUEUE_BYTES = _gauge(_TRANSPORT, "transport_queue_bytes", "And how many bytes these are.", "peer")
QUEUE_OLDEST = _gauge(
    _TRANSPORT, "transport_queue_oldest_seconds", "And how long the oldest has waited.", "peer"
)
NOTIFICATIONS = _counter(
    _TRANSPORT,
    "notifications",
    "Change notifications to queue managers (MS-MQCN), by what became of them: sent, delivered, "
    "failed.",
    "outcome",
)

# --- routing --------------------------------------------------------------------------------------

_ROUTING = "Routing"
TABLE_BUILDS = _counter(_ROUTING, "routing_table_builds", "Routing tables that were computed.")
TABLE_SITES = _gauge(_ROUTING, "routing_table_sites", "Sites in the routing table.")
ROUTING_FAILURES = _counter(
    _ROUTING, "routing_read_failures", "How often the directory could not be read for that."
)
RELAYED = _counter(_ROUTING, "routing_relayed_messages", "Messages of others that were passed on.")
EXHAUSTED = _counter(
    _ROUTING, "routing_exhausted_messages", "Messages of others that had too many hops behind them."
)

# --- discovery ------------------------------------------------------------------------------------

_DISCOVERY = "Discovery"
DISCOVERY = _counter(
    _DISCOVERY,
    "discovery_requests",
    "Requests by what became of them: answered, limited (too many from one address), malformed, "
    "foreign_enterprise, unprepared (the directory does not say enough).",
    "outcome",
)

# --- journal --------------------------------------------------------------------------------------

_JOURNAL = "Journal"
JOURNAL_LSN = _gauge(_JOURNAL, "journal_lsn", "The number of the newest record in the files.")
JOURNAL_DURABLE = _gauge(_JOURNAL, "journal_durable_lsn", "The same for what is on the disk.")
JOURNAL_BYTES = _counter(_JOURNAL, "journal_written_bytes", "Bytes written to the files.")
JOURNAL_FAILED = _gauge(_JOURNAL, "journal_failed", "1 while the journal cannot be written.")
OUTBOX = _gauge(
    _JOURNAL, "outbox_records", "Records in the store that are not yet on the disk as files."
)

METRICS = tuple(_all)
