"""The section [replication] of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.config.checks import (
    about,
    as_flag,
    as_optional_address,
    as_optional_guid,
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
    """How a server with a role (server.role) talks to the others (MC-MQDSRP)."""

    listen: str = field(
        default="",
        metadata=about(
            as_optional_address, "The address to take messages at. Empty: that of rpc.listen."
        ),
    )
    port: int = field(
        default=1801,
        metadata=about(
            as_port,
            "The TCP port of the queue manager, here and at machines of which only the address is "
            "known. 0: one that is free.",
        ),
    )
    ping: bool = field(
        default=False, metadata=about(as_flag, "Whether to answer queue managers that ping.")
    )
    ping_port: int = field(
        default=3527, metadata=about(as_port, "The UDP port for that. 0: one that is free.")
    )
    pec: str = field(
        default="",
        metadata=about(
            as_text,
            "The name of the PEC. This and the next four 'mqis join' fills in; a server whose "
            "store holds the directory already finds them there.",
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
            'Servers to believe before the directory tells of them: "NAME GUID KEY" each, the '
            "key in Base64.",
        ),
    )
    signing: SigningPolicy = field(
        default=SigningPolicy.REQUIRE,
        metadata=about(
            one_of(SigningPolicy),
            "What messages of others need. require: only signed messages are taken; accept: a "
            "signature that is there has to be right; none: signatures are not looked at, nor "
            "made. With less than require, whoever reaches the port can speak as any server.",
        ),
    )
    unsigned_beyond_loopback: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Whether a server that requires no signatures may take messages from other computers. "
            "It does not start otherwise.",
        ),
    )
    key: str = field(
        default="signing.key",
        metadata=about(
            as_text,
            "The file with the private key of this machine, relative to this one; it is made if it "
            "is not there. Nobody else may read it.",
        ),
    )
    journal: str = field(
        default="",
        metadata=about(
            as_text,
            "The directory for the journal of messages and changes, relative to this file. Empty: "
            "no journal is kept.",
        ),
    )
    snapshot_records: int = field(
        default=250_000,
        metadata=about(
            between(1_000, 1_000_000_000),
            "After so many records the journal gets a snapshot of the directory, from which "
            "history can begin.",
        ),
    )
    keep_snapshots: int = field(
        default=0,
        metadata=about(
            between(0, 10_000),
            "So many snapshots of the journal stay, with all records behind the oldest of them; "
            "what is older is deleted. 0: everything stays.",
        ),
    )
    notify: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Whether to tell queue managers what was changed about them and their queues "
            "(MS-MQCN).",
        ),
    )
    gather_ms: int = field(
        default=50,
        metadata=about(
            between(0, 60_000),
            "After a message to a server, changes wait this long so that they share the next.",
            live=True,
        ),
    )
    heartbeat_s: int = field(
        default=1200,
        metadata=about(
            between(1, _DAY), "Other servers hear the numbers at least this often.", live=True
        ),
    )
    retry_s: int = field(
        default=60,
        metadata=about(
            between(1, _DAY),
            "An unanswered request for changes is repeated after this, then after twice that.",
            live=True,
        ),
    )
    reply_wait_s: int = field(
        default=10,
        metadata=about(
            between(1, 600), "How long a change may take that another server makes.", live=True
        ),
    )
    recovery_wait_s: int = field(
        default=120,
        metadata=about(
            between(1, _DAY),
            "How long a new or restored authority waits for servers that do not answer.",
            live=True,
        ),
    )
    connect_retry_s: int = field(
        default=5,
        metadata=about(
            between(1, 600), "A server that cannot be reached is tried again after this."
        ),
    )
    route: bool = field(
        default=True,
        metadata=about(
            as_flag,
            "Whether to pass on messages between other machines (MS-MQBR), if the directory says "
            "that this one is a routing server.",
        ),
    )
    forwarded_powers: bool = field(
        default=False,
        metadata=about(
            as_flag,
            "Whether this server, as an authority, also makes changes that give power over others "
            "(roles, keys of servers, authorities, links, permissions) when another server asks "
            "for them. false: they are to be asked of the authority itself.",
        ),
    )
    max_sessions: int = field(
        default=256,
        metadata=about(
            between(1, 100_000),
            "Sessions that others may have with the queue manager. When there are too many, one "
            "that has sent no valid message gives way, of the address that has most.",
        ),
    )
    max_connections: int = field(
        default=512,
        metadata=about(
            between(1, 200_000), "Connections to the queue manager, those without a session too."
        ),
    )
    max_connections_per_address: int = field(
        default=128,
        metadata=about(
            between(1, 200_000),
            "Of these, how many of one address; IPv6 addresses count by their /64. At most 16 of "
            "them may be silent: the oldest is closed for the next.",
        ),
    )
    silence_s: int = field(
        default=10,
        metadata=about(
            between(1, 600),
            "Who connects to the queue manager and sends no first packet is cut off after this.",
        ),
    )
    clock_skew_s: int = field(
        default=1,
        metadata=about(
            between(0, _DAY),
            "How far the clocks of servers may be apart. For so long after it was restored from a "
            "backup this server makes no changes for servers that its store does not know: they "
            "could be requests from before that somebody sends again.",
        ),
    )
