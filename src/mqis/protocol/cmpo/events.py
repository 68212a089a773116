"""The effects of a partner for its driver, and its interface to the level above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from mqis.protocol.cmpo.partner_session import CmpoSession
from mqis.wire.cmpo.codes import TeardownType
from mqis.wire.cmpo.ixnremote import NO_GUID, BoundVersionSet, RemoteResult, ResourcesNegotiated
from mqis.wire.rpc.interfaces import Operation

# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """The answer to BuildContext. On success the driver adds a context handle for ``session``."""

    result: int
    session: CmpoSession | None = None
    guid_out: str = NO_GUID
    bound: BoundVersionSet = BoundVersionSet.NONE


AnyAnswer = ContextAnswer | ResourcesNegotiated | RemoteResult

# --- for the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Invoke:
    """Tells the driver to call a session's partner; it reports ``returned`` or ``failed``."""

    call: int
    session: CmpoSession
    operation: Operation[Any, Any]
    request: Any
    limit_s: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """Tells the driver to give up a call, and to report no result."""

    session: CmpoSession
    call: int


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """Tells the driver to answer an open call, which is identified by its token."""

    token: object
    answer: AnyAnswer


@dataclass(frozen=True, slots=True)
class Revoke:
    """Tells the driver that the context handle given out for a session is no longer valid."""

    session: CmpoSession


@dataclass(frozen=True, slots=True)
class Release:
    """Tells the driver that a session has ended: to drop its association and its handle."""

    session: CmpoSession


Effect = Invoke | Cancel | AnswerCall | Revoke | Release

# --- for the level above --------------------------------------------------------------------------


class LevelTwo(Protocol):
    """The protocol on top (MS-CMP). It may call the partner from inside each of these."""

    def session_up(self, session: CmpoSession, now: float) -> None:
        """Reports that a session is active, whichever side asked for it."""

    def session_failed(self, session: CmpoSession, result: int, now: float) -> None:
        """Reports that a session could not be set up."""

    def session_down(self, session: CmpoSession, teardown: TeardownType, now: float) -> None:
        """Reports that an active session has ended, forced or by a problem."""

    def grant(self, session: CmpoSession, requested: int, now: float) -> int:
        """The number of connections that the partner gets of those that it asks for."""

    def granted(self, session: CmpoSession, accepted: int, result: int, now: float) -> None:
        """Reports the result of an own request for connections."""

    def receive(self, session: CmpoSession, messages: int, boxcar: bytes, now: float) -> int | None:
        """Takes a boxcar; returns the result of the call that brought it.

        None: the boxcar is taken, but the call returns only after ``Partner.release``.
        """

    def sent(self, session: CmpoSession, now: float) -> None:
        """Reports that the partner has taken the last boxcar."""
