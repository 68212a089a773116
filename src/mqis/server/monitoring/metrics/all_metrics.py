"""All metrics that a server exports, with their labels and help texts.

docs/metrics.md and the dashboard are generated from this. Metrics of replication name their source
here; the modules beside this one read the other values. Labels are names of this enterprise's
servers and sites, or fixed words, so their number is limited by the number of servers, sites,
operations and kinds of errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mqis.runtime.histogram import Histogram
from mqis.server.replication import ReplicationService

#: Reads the value of a metric without labels from a server that replicates.
Read = Callable[[ReplicationService], float]


class MetricKind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric; ``name`` is without the suffixes that counters and histograms get."""

    group: str
    kind: MetricKind
    name: str
    help: str
    labels: tuple[str, ...] = ()
    #: None: a reader in ``metric_values`` or ``replicating`` gives the samples.
    read: Read | None = None

    @property
    def exported(self) -> str:
        """The name in queries; for a histogram, the common prefix of its three series."""
        return f"{self.name}_total" if self.kind is MetricKind.COUNTER else self.name


#: The values of one metric: pairs of label values, in the order of the metric, and a value.
Samples = list[tuple[tuple[str, ...], float | Histogram]]


def alone(value: float) -> Samples:
    """The value of a metric without labels."""
    return [((), value)]


_all: list[Metric] = []


def _metric(
    group: str, kind: MetricKind, name: str, help_: str, *labels: str, read: Read | None = None
) -> Metric:
    metric = Metric(group, kind, f"mqis_{name}", help_, labels, read)
    _all.append(metric)
    return metric


def _gauge(group: str, name: str, help_: str, *labels: str) -> Metric:
    return _metric(group, MetricKind.GAUGE, name, help_, *labels)


def _counter(group: str, name: str, help_: str, *labels: str, read: Read | None = None) -> Metric:
    return _metric(group, MetricKind.COUNTER, name, help_, *labels, read=read)


def _histogram(group: str, name: str, help_: str, *labels: str) -> Metric:
    return _metric(group, MetricKind.HISTOGRAM, name, help_, *labels)


# --- the server -----------------------------------------------------------------------------------

_SERVER = "Server"
BUILD = _gauge(_SERVER, "build_info", "Always 1; the labels are the versions.", "version", "python")
SERVER = _gauge(
    _SERVER,
    "server_info",
    "Always 1; the labels identify the server.",
    *("server", "role", "site", "enterprise"),
)
SERVING = _gauge(_SERVER, "server_serving", "1 if clients are served, 0 while the server starts.")
VERDICT = _gauge(
    _SERVER,
    "verdict_findings",
    "Findings of the verdict that /health gives, by grade (red, amber) and kind.",
    *("grade", "kind"),
)
DISK_FREE = _gauge(
    _SERVER,
    "disk_free_bytes",
    "Free space where the files are: store, journal, archive; of a directory, not of a bucket.",
    "place",
)
KEY_MADE = _gauge(
    _SERVER,
    "signing_key_written_timestamp_seconds",
    "The time since which the signing key signs: 'mqis key rotate' makes it the present.",
)
CERTIFICATE_EXPIRY = _gauge(
    _SERVER,
    "certificate_expiry_timestamp_seconds",
    "The time at which the first certificate in a file of the configuration (store.ca_file) "
    "expires.",
    "setting",
)

# --- RPC ------------------------------------------------------------------------------------------

_RPC = "RPC"
_CALL = ("endpoint", "interface", "operation")
CALLS = _counter(_RPC, "rpc_calls", "Calls that were executed.", *_CALL)
CALL_DURATION = _histogram(
    _RPC,
    "rpc_call_duration_seconds",
    "Duration of calls from dispatch to answer: all calls that wait, one in eight of the others.",
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
    _RPC, "rpc_connections_accepted", "Connections that were accepted.", "endpoint"
)
CONNECTIONS_REFUSED = _counter(
    _RPC,
    "rpc_connections_refused",
    "Connections that were refused, for their number or for invalid data.",
    "endpoint",
)
CONNECTIONS_EVICTED = _counter(
    _RPC,
    "rpc_connections_evicted",
    "Connections of callers that had not logged on, closed to make room for others.",
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
    "Failed logons that were refused unchecked, because their account or address had to wait.",
)
DENIALS = _counter(_RPC, "access_denied", "Calls that access checks refused.")
OVER_BUDGET = _counter(
    _RPC,
    "changes_over_budget",
    "Changes that were refused because their account had used up its hour's budget: "
    "changes or bytes.",
    "budget",
)

# --- the store ------------------------------------------------------------------------------------

_STORE = "Store"
COMMITS = _counter(
    _STORE, "store_commits", "Commits; each covers all operations that waited for it."
)
COMMIT_FAILURES = _counter(_STORE, "store_commit_failures", "Commits that failed.")
OPERATIONS = _counter(_STORE, "store_operations", "Operations that were executed.")
WAITING_OPERATIONS = _gauge(
    _STORE, "store_waiting_operations", "Operations that wait for a commit."
)
COMMIT_OPERATIONS = _histogram(_STORE, "store_commit_operations", "Operations per commit.")
FLUSH_DURATION = _histogram(
    _STORE,
    "store_flush_duration_seconds",
    "Duration of commits, from the last operation until it is durable.",
)

# --- replication ----------------------------------------------------------------------------------

_REPLICATION = "Replication"
PARTITION_LAST = _gauge(
    _REPLICATION,
    "partition_last_sequence",
    "The last sequence number on this server. The authority's value minus a replica's is the lag.",
    "partition",
)
PARTITION_PURGED = _gauge(
    _REPLICATION,
    "partition_purged_sequence",
    "Tombstones up to this number are purged.",
    "partition",
)
PARTITION_AUTHORITY = _gauge(
    _REPLICATION, "partition_authority", "1 if this server is the authority.", "partition"
)
PARTITION_DIFFERENT = _gauge(
    _REPLICATION,
    "partition_contents_different",
    "1 if the contents differ from those of a peer (monitoring.peers) with the same number.",
    "partition",
)
PARTITION_CHANGED = _gauge(
    _REPLICATION,
    "partition_contents_changed",
    "1 if something else than mqis has changed the contents.",
    "partition",
)
PARTITION_MISSING = _gauge(
    _REPLICATION,
    "partition_missing_changes",
    "Known changes that are missing here, plus quarantined objects.",
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
    "Changes of an own partition that the neighbour may lack.",
    *("partition", "neighbour"),
)
LAG_SECONDS = _gauge(
    _REPLICATION,
    "replication_lag_seconds",
    "The age of the oldest change that the neighbour may lack; 0 if there is none.",
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
    "Changes that are not yet in a message to the neighbour.",
    "neighbour",
)
CHANGES = _counter(
    _REPLICATION,
    "replication_changes",
    "Changes by origin: own (a client called this server), requested (another server forwarded the "
    "call), applied (made by another authority).",
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
    "Accepted replies to requests for missing changes.",
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
    "Full synchronisations that were completed.",
    read=lambda service: service.driver.node.replication.counters.sync0_completed,
)
REFUSALS = _counter(
    _REPLICATION,
    "replication_refusals",
    "Messages, or changes in them, that were refused.",
    "reason",
)
FORWARDED = _counter(
    _REPLICATION,
    "replication_forwarded_changes",
    "Changes that were forwarded to another authority.",
    read=lambda service: service.driver.statistics.forwarded,
)
FORWARD_FAILURES = _counter(
    _REPLICATION,
    "replication_forward_failures",
    "Forwarded changes that the authority refused.",
    read=lambda service: service.driver.statistics.forward_failures,
)
FORWARD_TIMEOUTS = _counter(
    _REPLICATION,
    "replication_forward_timeouts",
    "Forwarded changes that were not answered in time.",
    read=lambda service: service.driver.statistics.forward_timeouts,
)
FORWARD_DURATION = _histogram(
    _REPLICATION,
    "replication_forward_duration_seconds",
    "Duration of forwarded changes until the answer.",
)
RELAYED_REQUESTS = _counter(
    _REPLICATION,
    "replication_relayed_requests",
    "Requests of backup controllers that were relayed to an authority.",
    read=lambda service: service.driver.node.replication.counters.relayed_requests,
)
UNANSWERED_REQUESTS = _counter(
    _REPLICATION,
    "replication_unanswered_requests",
    "Own and relayed requests that were given up.",
    read=lambda service: service.driver.node.replication.counters.unanswered_requests,
)
RESTARTS = _counter(
    _REPLICATION,
    "replication_restarts",
    "Restarts of replication from the store.",
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
    "Connections that were refused because of a limit.",
    read=lambda service: service.driver.node.queue.statistics.refused_connections,
)
TRANSPORT_CLOSED = _counter(
    _TRANSPORT,
    "transport_connections_closed",
    "Incoming connections that this server closed: to make room for others, for invalid or "
    "incomplete data, or because they were idle.",
    read=lambda service: service.driver.node.queue.statistics.closed_connections,
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
    "Messages that the peer acknowledged.",
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
    "Duplicate messages that were dropped.",
    read=lambda service: service.driver.node.queue.statistics.duplicates,
)
REFUSED = _counter(
    _TRANSPORT,
    "transport_messages_refused",
    "Messages that were refused for another reason, such as a wrong signature.",
    read=lambda service: (
        service.driver.node.queue.statistics.refused
        - service.driver.node.queue.statistics.duplicates
    ),
)
EXPIRED = _counter(
    _TRANSPORT,
    "transport_messages_expired",
    "Own messages that expired before they arrived.",
    read=lambda service: service.driver.node.queue.statistics.expired,
)
UNDELIVERED = _counter(
    _TRANSPORT,
    "transport_messages_undelivered",
    "Own messages that did not arrive, including expired ones.",
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
    "Bytes received from queue managers.",
    read=lambda service: service.driver.node.queue.statistics.bytes_received,
)
QUEUE_MESSAGES = _gauge(
    _TRANSPORT,
    "transport_queue_messages",
    "Messages that wait for a neighbour or for its acknowledgement; other: for all other machines.",
    "peer",
)
QUEUE_BYTES = _gauge(_TRANSPORT, "transport_queue_bytes", "Bytes of these messages.", "peer")
QUEUE_OLDEST = _gauge(
    _TRANSPORT,
    "transport_queue_oldest_seconds",
    "Seconds that the oldest of these messages has waited.",
    "peer",
)
NOTIFICATIONS = _counter(
    _TRANSPORT,
    "notifications",
    "Change notifications to queue managers (MS-MQCN) by outcome: sent, delivered, failed.",
    "outcome",
)

# --- routing --------------------------------------------------------------------------------------

_ROUTING = "Routing"
TABLE_BUILDS = _counter(_ROUTING, "routing_table_builds", "Routing tables that were computed.")
TABLE_SITES = _gauge(_ROUTING, "routing_table_sites", "Sites in the routing table.")
ROUTING_FAILURES = _counter(
    _ROUTING, "routing_read_failures", "Failed reads of the directory for the routing table."
)
RELAYED = _counter(
    _ROUTING, "routing_relayed_messages", "Messages of other machines that were forwarded."
)
EXHAUSTED = _counter(
    _ROUTING,
    "routing_exhausted_messages",
    "Messages of other machines that exceeded the hop limit.",
)

# --- discovery ------------------------------------------------------------------------------------

_DISCOVERY = "Discovery"
DISCOVERY = _counter(
    _DISCOVERY,
    "discovery_requests",
    "Requests by outcome: answered, limited (too many from one address), malformed, "
    "foreign_enterprise, unprepared (the directory lacks information for an answer).",
    "outcome",
)

# --- monitoring -----------------------------------------------------------------------------------

UNANSWERED = _counter(
    "Monitoring",
    "monitoring_connections_unanswered",
    "Connections to the monitoring port that were closed without an answer: to make room for "
    "others, or because no valid request came in time.",
)

# --- journal --------------------------------------------------------------------------------------

_JOURNAL = "Journal"
JOURNAL_LSN = _gauge(_JOURNAL, "journal_lsn", "The number of the newest record in the files.")
JOURNAL_DURABLE = _gauge(
    _JOURNAL, "journal_durable_lsn", "The number of the newest record that is durable on disk."
)
JOURNAL_BYTES = _counter(_JOURNAL, "journal_written_bytes", "Bytes written to the files.")
JOURNAL_FAILED = _gauge(_JOURNAL, "journal_failed", "1 while the journal cannot be written.")
JOURNAL_FAULTS = _gauge(
    _JOURNAL,
    "journal_faults",
    "Damaged, changed and missing parts that the last check of the files found "
    "(monitoring.verify_s).",
)
OUTBOX = _gauge(
    _JOURNAL, "outbox_records", "Records in the store that are not yet durable in journal files."
)
ARCHIVE_FILES = _counter(
    _JOURNAL, "archive_files", "Files of the journal copied to the archive and verified."
)
ARCHIVE_BYTES = _counter(_JOURNAL, "archive_bytes", "Bytes of these files.")
ARCHIVE_FAILURES = _counter(_JOURNAL, "archive_failures", "Failed attempts to archive.")
ARCHIVE_WAITING = _gauge(
    _JOURNAL, "archive_waiting_files", "Closed files that are not in the archive yet."
)
ARCHIVE_LAG = _gauge(
    _JOURNAL,
    "archive_lag_seconds",
    "Seconds since the oldest of these files was closed; 0 if there is none.",
)

METRICS = tuple(_all)
