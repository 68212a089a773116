"""A session object and its states (3.2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.wire.cmpo.codes import SessionRank
from mqis.wire.cmpo.ixnremote import NegotiateResources, SendReceive
from mqis.wire.cmpo.versions import BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle


class SessionState(Enum):
    CONNECTING = auto()
    CONFIRMING = auto()
    ACTIVE = auto()
    #: Of a secondary only: it has asked the primary to tear down.
    REQUESTING_TEARDOWN = auto()
    TEARDOWN = auto()
    #: Removed from the table; whoever still holds the object can see it.
    CLOSED = auto()


SETTING_UP = frozenset({SessionState.CONNECTING, SessionState.CONFIRMING})
ENDING = frozenset({SessionState.REQUESTING_TEARDOWN, SessionState.TEARDOWN})


class CallKind(Enum):
    """What an outgoing call is for."""

    POKE = auto()
    BUILD = auto()
    #: The secondary's call inside the primary's.
    BUILD_BACK = auto()
    BEGIN_TEARDOWN = auto()
    TEARDOWN = auto()
    ALLOCATE = auto()
    SEND = auto()


@dataclass(slots=True, eq=False)
class Session:
    """The pair of associations with one partner."""

    name: NameObject
    #: Of this side.
    rank: SessionRank
    #: Whether the level above here asked for it first.
    initiated_here: bool
    state: SessionState = SessionState.CONNECTING
    version: BoundVersionSet = BoundVersionSet.NONE
    #: The partner's handle for the session, to be given in calls.
    handle: ContextHandle = ContextHandle.NULL
    #: pszGuidIn of the bind attempt under way.
    bind_guid: Guid = Guid.NULL
    #: The partner has no W methods.
    narrow: bool = False
    failures: int = 0
    setup_due: float | None = None
    #: When the secondary stops waiting for its own call (half the setup timer).
    inner_due: float | None = None
    retry_due: float | None = None
    teardown_due: float | None = None
    #: Outgoing calls that have not ended.
    calls: dict[int, CallKind] = field(default_factory=dict)
    #: The primary's call that waits for the secondary's own.
    outer: object = None
    #: The partner's SendReceive that returns when the level above has room again.
    unreturned: object = None
    #: Calls that came before the session was active or behind that one, with their tokens.
    held: list[tuple[object, NegotiateResources | SendReceive]] = field(default_factory=list)
    #: Own calls that came before the partner's was, and when to make them again.
    again: list[tuple[float, CallKind, NegotiateResources | SendReceive]] = field(
        default_factory=list
    )
    again_failures: int = 0
    #: The level above knows that the session is lost.
    told_down: bool = False

    @property
    def is_primary(self) -> bool:
        return self.rank is SessionRank.PRIMARY

    @property
    def next_due(self) -> float | None:
        dues = [self.setup_due, self.inner_due, self.retry_due, self.teardown_due]
        dues += [due for due, _, _ in self.again]
        return min((due for due in dues if due is not None), default=None)
