"""The state that all connections of one server endpoint share."""

from __future__ import annotations

from dataclasses import dataclass, field

from mqis.protocol.authentication import Authenticator, AuthLevel
from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.groups import AssociationGroups
from mqis.protocol.rpc.interface import Interface
from mqis.protocol.rpc.limits import RpcLimits

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
