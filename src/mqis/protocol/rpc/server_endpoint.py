"""The state that all connections of one server endpoint share."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.authentication import Authenticator, AuthLevel
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.groups import AssociationGroups

# --- Limits on every resource of a server that a peer could exhaust -------------------------------

#: The memory of a security context and of a presentation context, in bytes, as it is charged.
SECURITY_CONTEXT_BYTES, PRESENTATION_CONTEXT_BYTES = 16 * 1024, 256
#: What a connection may keep without a charge: a logon, and some interfaces. The number of
#: connections bounds it, so that a user can log on whatever strangers have taken.
LOGON_BYTES = 24 * 1024


@dataclass(frozen=True, slots=True)
class RpcLimits:
    """The limits of one connection."""

    #: Bytes of one PDU. Other implementations never agree to more; an interface that transfers
    #: much between servers of this implementation may offer more, up to 65,528.
    max_frag: int = 5840
    #: Stub bytes of one call, all fragments together; also the largest alloc_hint believed.
    max_stub: int = 4 * 1024 * 1024
    #: Calls that wait or run. No more are read until one ends.
    max_calls: int = 64
    max_contexts: int = 1024
    max_security_contexts: int = 2049
    #: The same on a connection over which nobody with a name has logged on.
    max_strangers_security_contexts: int = 8
    #: Those of them that may be between two legs.
    max_unfinished_security_contexts: int = 16
    #: The nesting depth of callbacks and the calls inside them.
    max_callback_depth: int = 4
    #: Failed logons after which an association ends.
    max_failed_logons: int = 3
    #: Seconds from the connection to its first bind, and from the first leg of authentication to
    #: its last.
    bind_timeout_s: float = 30.0
    #: Seconds from the first byte of a PDU to its last.
    pdu_timeout_s: float = 30.0
    #: Seconds from the first fragment of a call to its last.
    call_timeout_s: float = 60.0
    #: Seconds without a call or a byte. Context handles do not keep a connection open, since
    #: anonymous callers get them too.
    idle_timeout_s: float = 900.0


# --- The state that all connections of one server endpoint share ----------------------------------

_STATUSES = frozenset(int(status) for status in FaultStatus)


@dataclass(slots=True)
class RpcStatistics:
    """The counters of rpc_mgmt_inq_stats, and those of refusals.

    Calls out are those that the server makes: callbacks (C706 rpc_mgmt_inq_stats).
    """

    calls_in: int = 0
    calls_out: int = 0
    packets_in: int = 0
    packets_out: int = 0
    faults: int = 0
    refused: int = 0
    #: Connections of strangers that were closed to make room for others.
    evicted: int = 0
    #: Faults by status; 0 counts all unknown ones, which a client may have chosen.
    fault_statuses: dict[int, int] = field(default_factory=dict)

    def fault(self, status: int) -> None:
        self.faults += 1
        key = status if status in _STATUSES else 0
        self.fault_statuses[key] = self.fault_statuses.get(key, 0) + 1


@dataclass(slots=True)
class ServerEndpoint:
    """The interfaces at one address."""

    interfaces: tuple[Interface, ...]
    groups: AssociationGroups
    authenticator: Authenticator | None = None
    #: The port as text: bind_ack carries it as the secondary address.
    secondary_address: str = ""
    limits: RpcLimits = field(default_factory=RpcLimits)
    #: An identity is valid for calls protected at this level or above. Below integrity, an
    #: attacker may have relayed another user's logon.
    min_level: int = AuthLevel.INTEGRITY
    statistics: RpcStatistics = field(default_factory=RpcStatistics)
