"""The section [replication] of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.config.checks import (
    about,
    as_flag,
    as_optional_address,
    as_optional_guid,
    as_place,
    as_port,
    as_text,
    as_texts,
    between,
    one_of,
)
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.wire.guid import Guid

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class ReplicationSection:
    """Replication between servers, for a server with a role (server.role) (MC-MQDSRP)."""

    listen: str = field(
        default="",
        metadata=about(
            as_optional_address, "The address to receive messages at. Empty: that of rpc.listen."
        ),
    )
    port: int = field(
        default=1801,
        metadata=about(
            as_port,
            "The TCP port of the queue manager, of this server and of machines whose port is not "
            "known. 0: a free one.",
        ),
    )
    ping: bool = field(
        default=False, metadata=about(as_flag, "Answer the pings of queue managers.")
    )
    ping_port: int = field(
        default=3527, metadata=about(as_port, "The UDP port for pings. 0: a free one.")
    )
    pec: str = field(
        default="",
        metadata=about(
            as_text,
            "The name of the PEC. 'mqis join' fills in this key and the next four; a server whose "
            "store already holds the directory finds the values there.",
        ),
    )
    psc: str = field(
        default="", metadata=about(as_text, "The name of the PSC of this site, for a BSC.")
    )
    id: Guid | None = field(
        default=None,
        metadata=about(as_optional_guid, "The GUID of this machine in the directory."),
    )
    site_id: Guid | None = field(
        default=None, metadata=about(as_optional_guid, "The GUID of its site.")
    )
    seeds: tuple[str, ...] = field(
        default=(),
        metadata=about(
            as_texts,
            'Servers to trust before they are in the directory: "NAME GUID KEY" each, the key in '
            "Base64.",
            live=True,
        ),
    )
    signing: SigningPolicy = field(
        default=SigningPolicy.REQUIRE,
        metadata=about(
            one_of(SigningPolicy),
            "Signatures of messages. require: only signed messages are accepted; accept: unsigned "
            "messages too, but a signature has to be valid; none: signatures are neither checked "
            "nor made. With less than require, anyone who can reach the port can act as any "
            "server.",
        ),
    )
    unsigned_beyond_loopback: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Allow a server that does not require signatures to listen for other computers. "
            "Without it, such a server does not start.",
        ),
    )
    key: str = field(
        default="signing.key",
        metadata=about(
            as_text,
            "The file with the private key of this machine, relative to this file; it is made if "
            "it is missing. No other user may be able to read it.",
        ),
    )
    journal: str = field(
        default="",
        metadata=about(
            as_text,
            "The directory for the journal of messages and changes, relative to this file. Empty: "
            "no journal.",
        ),
    )
    snapshot_records: int = field(
        default=250_000,
        metadata=about(
            between(1_000, 1_000_000_000),
            "After this many records the journal gets a snapshot of the directory, from which "
            "history can begin.",
        ),
    )
    keep_snapshots: int = field(
        default=0,
        metadata=about(
            between(0, 10_000),
            "The number of snapshots to keep in the journal, with all records after the oldest of "
            "them; older records are deleted. 0: keep everything.",
        ),
    )
    archive: str = field(
        default="",
        metadata=about(
            as_place,
            "The place to copy closed segments and snapshots of the journal to: a directory, "
            "relative to this file, or a URI (s3://BUCKET/PATH, gs:, abfss:, hdfs:). The journal "
            "then deletes only what is archived. Empty: no archive.",
        ),
    )
    seal_hours: int = field(
        default=24,
        metadata=about(
            between(0, 8_760),
            "Hours after which the journal begins a new segment, whose signed header seals the "
            "records before it. 0: only when a segment is full or a snapshot is taken.",
        ),
    )
    notify: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Notify queue managers of changes to their machine and queues (MS-MQCN).",
        ),
    )
    gather_ms: int = field(
        default=50,
        metadata=about(
            between(0, 60_000),
            "Milliseconds that changes wait after a message to a server, to share the next one.",
            live=True,
        ),
    )
    heartbeat_s: int = field(
        default=1200,
        metadata=about(
            between(1, _DAY),
            "Seconds between two heartbeats with the last sequence numbers.",
            live=True,
        ),
    )
    retry_s: int = field(
        default=60,
        metadata=about(
            between(1, _DAY),
            "Seconds after which an unanswered request for changes is repeated; twice that for "
            "the next time.",
            live=True,
        ),
    )
    reply_wait_s: int = field(
        default=10,
        metadata=about(
            between(1, 600),
            "Seconds to wait for a change that is forwarded to another server.",
            live=True,
        ),
    )
    recovery_wait_s: int = field(
        default=120,
        metadata=about(
            between(1, _DAY),
            "Seconds that a new or restored authority waits for servers that do not answer.",
            live=True,
        ),
    )
    connect_retry_s: int = field(
        default=5,
        metadata=about(between(1, 600), "Seconds between two attempts to connect to a server."),
    )
    route: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Forward messages between other machines (MS-MQBR), if this machine is a routing "
            "server in the directory.",
        ),
    )
    forwarded_powers: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Let this server, as an authority, also make privileged changes (roles, keys of "
            "servers, authorities, links, permissions) that other servers forward. false: "
            "privileged changes have to be made at the authority itself.",
        ),
    )
    max_sessions: int = field(
        default=256,
        metadata=about(
            between(1, 100_000),
            "Sessions that others may have with the queue manager. When there are too many, one "
            "without a valid message is closed, of the address that has most sessions.",
        ),
    )
    max_connections: int = field(
        default=512,
        metadata=about(
            between(1, 200_000),
            "Connections to the queue manager, including those without a session.",
        ),
    )
    max_connections_per_address: int = field(
        default=128,
        metadata=about(
            between(1, 200_000),
            "Connections from one address; IPv6 addresses count by their /64. At most 16 of them "
            "may be silent: the oldest is closed for the next.",
        ),
    )
    silence_s: int = field(
        default=10,
        metadata=about(
            between(1, 600),
            "Seconds after which a connection to the queue manager is closed that has sent no "
            "first packet.",
        ),
    )
    clock_skew_s: int = field(
        default=1,
        metadata=about(
            between(0, _DAY),
            "Seconds by which the clocks of servers may differ. For this long after a restore from "
            "a backup, this server makes no changes for servers that its store does not know: they "
            "could be replays of earlier requests.",
        ),
    )
