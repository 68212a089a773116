"""The effects of a partner for its driver, and its interface to the level above."""

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
    """Tells the driver to call a session's partner; it reports ``returned`` or ``failed``."""

    call: int
    session: Session
    operation: Operation[Any, Any]
    request: Any
    limit_s: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Tells the driver to give up a call, and to report no result."""

    session: Session
    call: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Tells the driver to answer an open call, which is identified by its token."""

    token: object
    answer: AnyAnswer


@dataclass(frozen=True, slots=True)
class Revoke:
    """Tells the driver that the context handle given out for a session is no longer valid."""

    session: Session


@dataclass(frozen=True, slots=True)
class Release:
    """Tells the driver that a session has ended: to drop its association and its handle."""

    session: Session


Effect = Invoke | Cancel | Answer | Revoke | Release

# --- for the level above --------------------------------------------------------------------------


class LevelTwo(Protocol):
    """The protocol on top (MS-CMP). It may call the partner from inside each of these."""

    def session_up(self, session: Session, now: float) -> None:
        """Reports that a session is active, whichever side asked for it."""

    def session_failed(self, session: Session, result: int, now: float) -> None:
        """Reports that a session could not be set up."""

    def session_down(self, session: Session, teardown: TeardownType, now: float) -> None:
        """Reports that an active session has ended, forced or by a problem."""

    def grant(self, session: Session, requested: int, now: float) -> int:
        """The number of connections that the partner gets of those that it asks for."""

    def granted(self, session: Session, accepted: int, result: int, now: float) -> None:
        """Reports the result of an own request for connections."""

    def receive(self, session: Session, messages: int, boxcar: bytes, now: float) -> int | None:
        """Takes a boxcar; returns the result of the call that brought it.

        None: the boxcar is taken, but the call returns only after ``Partner.release``.
        """

    def sent(self, session: Session, now: float) -> None:
        """Reports that the partner has taken the last boxcar."""
