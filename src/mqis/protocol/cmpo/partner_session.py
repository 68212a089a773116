"""A session object and its states (3.2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from mqis.protocol.cmpo.nameobject import NameObject
from mqis.wire.cmpo.codes import SessionRank
from mqis.wire.cmpo.ixnremote import (
    BindVersionSet,
    BoundVersionSet,
    NegotiateResources,
    SendReceive,
)
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle


class SessionState(Enum):
    CONNECTING = auto()
    CONFIRMING = auto()
    ACTIVE = auto()
    #: Only of a secondary, which has asked the primary to tear down.
    REQUESTING_TEARDOWN = auto()
    TEARDOWN = auto()
    #: Removed from the table; code that still holds the object sees this state.
    CLOSED = auto()


SETTING_UP = frozenset({SessionState.CONNECTING, SessionState.CONFIRMING})
ENDING = frozenset({SessionState.REQUESTING_TEARDOWN, SessionState.TEARDOWN})


class CallKind(Enum):
    """The purpose of an outgoing call."""

    POKE = auto()
    BUILD = auto()
    #: BuildContext of the secondary, made inside that of the primary.
    BUILD_BACK = auto()
    BEGIN_TEARDOWN = auto()
    TEARDOWN = auto()
    ALLOCATE = auto()
    SEND = auto()


@dataclass(slots=True, eq=False)
class CmpoSession:
    """The pair of associations with one partner."""

    name: NameObject
    #: The rank of this side.
    rank: SessionRank
    #: True if the level above on this side asked for it first.
    initiated_here: bool
    state: SessionState = SessionState.CONNECTING
    version: BoundVersionSet = BoundVersionSet.NONE
    #: The partner's handle for the session, a parameter of calls.
    handle: ContextHandle = ContextHandle.NULL
    #: pszGuidIn of the current bind attempt.
    bind_guid: Guid = Guid.NULL
    #: The partner has no W methods.
    narrow: bool = False
    failures: int = 0
    setup_due: float | None = None
    #: The time at which the secondary's own call times out (half the setup timer).
    inner_due: float | None = None
    retry_due: float | None = None
    teardown_due: float | None = None
    #: Outgoing calls that have not ended.
    calls: dict[int, CallKind] = field(default_factory=dict)
    #: The token of the primary's call, which waits for the secondary's own.
    outer: object = None
    #: The token of the partner's SendReceive, which returns when the level above has room again.
    unreturned: object = None
    #: Calls that came before the session was active or after that SendReceive, with their tokens.
    held: list[tuple[object, NegotiateResources | SendReceive]] = field(default_factory=list)
    #: Own calls that the partner was not ready for, and the times to retry them.
    retries: list[tuple[float, CallKind, NegotiateResources | SendReceive]] = field(
        default_factory=list
    )
    retry_failures: int = 0
    #: True once ``session_down`` was reported to the level above.
    reported_down: bool = False

    @property
    def is_primary(self) -> bool:
        return self.rank is SessionRank.PRIMARY

    @property
    def next_due(self) -> float | None:
        dues = [self.setup_due, self.inner_due, self.retry_due, self.teardown_due]
        dues += [due for due, _, _ in self.retries]
        return min((due for due in dues if due is not None), default=None)


# --- Version negotiation between partners (3.1, 3.2.3, 3.3.4.2.1) ---------------------------------

Limits = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VersionLimits:
    """Minimum and maximum of each level. Level one is 1..2: this side has W methods (3.2.3.2)."""

    level_two: Limits = (1, 1)
    level_three: Limits = (1, 5)
    level_one: Limits = (1, 2)

    def __post_init__(self) -> None:
        for low, high in (self.level_one, self.level_two, self.level_three):
            if not 0 <= low <= high <= 0xFFFF_FFFF:
                raise ValueError(f"no version lies in {low}..{high}")

    @property
    def offered(self) -> BindVersionSet:
        return BindVersionSet(*self.level_one, *self.level_two, *self.level_three)

    def bind(self, caller: BindVersionSet) -> BoundVersionSet | None:
        """The highest version of each level that both have; None if one level has none."""
        one = _highest(self.level_one, (caller.min_level_one, caller.max_level_one))
        two = _highest(self.level_two, (caller.min_level_two, caller.max_level_two))
        three = _highest(self.level_three, (caller.min_level_three, caller.max_level_three))
        if one is None or two is None or three is None:
            return None
        return BoundVersionSet(one, two, three)


def _highest(mine: Limits, theirs: Limits) -> int | None:
    version = min(mine[1], theirs[1])
    return version if version >= max(mine[0], theirs[0]) else None
