"""What a partner asks of its driver, and what it asks and tells the level above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mqis.protocol.cmpo.session import Session
from mqis.wire.cmpo.codes import TeardownType
from mqis.wire.cmpo.ixnremote import NO_GUID, ResourcesNegotiated, Result
from mqis.wire.cmpo.versions import BoundVersionSet
from mqis.wire.rpc.operation import Operation

# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """The answer to BuildContext. On success the driver adds a context handle for ``session``."""

    result: int
    session: Session | None = None
    guid_out: str = NO_GUID
    bound: BoundVersionSet = BoundVersionSet.NONE


AnyAnswer = ContextAnswer | ResourcesNegotiated | Result

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call the partner of ``session``, then ``returned`` or ``failed`` with the same number."""

    call: int
    session: Session
    operation: Operation[Any, Any]
    request: Any
    limit_s: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Give up a call; nothing is to be reported of it."""

    session: Session
    call: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a call that was left open, by the token it came with."""

    token: object
    answer: AnyAnswer


@dataclass(frozen=True, slots=True)
class Revoke:
    """The context handle that was given out for a session is no longer good."""

    session: Session


@dataclass(frozen=True, slots=True)
class Release:
    """A session is no more: drop its association, and the handle given out for it."""

    session: Session


Effect = Invoke | Cancel | Answer | Revoke | Release

# --- for the level above --------------------------------------------------------------------------


class LevelTwo(Protocol):
    """The protocol on top (MS-CMP). It may call the partner from inside each of these."""

    def session_up(self, session: Session, now: float) -> None:
        """A session is active, whoever asked for it."""

    def session_failed(self, session: Session, result: int, now: float) -> None:
        """A session could not be set up."""

    def session_down(self, session: Session, teardown: TeardownType, now: float) -> None:
        """A session that was active has ended, forced or by a problem."""

    def grant(self, session: Session, requested: int, now: float) -> int:
        """How many of the connections that the partner asks for it gets."""

    def granted(self, session: Session, accepted: int, result: int, now: float) -> None:
        """What became of an own request for connections."""

    def receive(self, session: Session, messages: int, boxcar: bytes, now: float) -> int | None:
        """Take a boxcar over; the result of the call that brought it.

        None: taken over, but the call is to return later, when ``Partner.release`` says so.
        """

    def sent(self, session: Session, now: float) -> None:
        """The partner has taken the last boxcar over."""
