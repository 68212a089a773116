"""The reasons that there is no route, and the objects that cause it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid


class RouteFault(Enum):
    """The fault of ``Breakage.subject``; messages put its value after the object's name."""

    UNKNOWN_MACHINE = "is not in the directory"
    NO_SITE = "belongs to no site of the directory"
    NO_ROUTING_SERVER = "has no routing server"
    NO_GATE = "has no gate"
    NO_PATH = "cannot be reached over any link"
    NO_HOP = "is not in the directory, nor is any other candidate for the next hop"
    OUT_SELF = "has no out-routing server but itself"
    HOP_LIMIT = "is one relay too many: the hop count is exhausted"
    GATE_UNKNOWN = "is named as a gate but is not in the directory"
    GATE_ELSEWHERE = "is named as a gate but belongs to another site"
    GATE_NO_ROUTER = "is named as a gate but is not a routing server"
    LINK_UNKNOWN_SITE = "names a site that is not in the directory"
    LINK_SELF = "joins a site to itself"
    LINK_COST = "has a cost outside 1 to 999999"


class SubjectKind(Enum):
    MACHINE = "machine"
    SITE = "site"
    LINK = "link"


_SITE_FAULTS = (RouteFault.NO_ROUTING_SERVER, RouteFault.NO_GATE, RouteFault.NO_PATH)
_LINK_FAULTS = (RouteFault.LINK_UNKNOWN_SITE, RouteFault.LINK_SELF, RouteFault.LINK_COST)


@dataclass(frozen=True, slots=True)
class Breakage:
    """The object that breaks a route, and the causes of that."""

    fault: RouteFault
    subject: Guid
    causes: tuple[Breakage, ...] = ()

    @property
    def kind(self) -> SubjectKind:
        if self.fault in _SITE_FAULTS:
            return SubjectKind.SITE
        return SubjectKind.LINK if self.fault in _LINK_FAULTS else SubjectKind.MACHINE

    def __str__(self) -> str:
        return f"{self.kind.value} {self.subject} {self.fault.value}"


class NoRouteError(MqisError):
    """The routing attempt fails (MS-MQBR 3.1.5.1); the caller may try again later."""

    def __init__(self, breakage: Breakage) -> None:
        super().__init__(f"no route: {breakage}")
        self.breakage = breakage

    def __reduce__(self) -> tuple[type[NoRouteError], tuple[Breakage]]:
        return type(self), (self.breakage,)
