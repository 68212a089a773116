"""The addresses from which partners asked for sessions.

A caller names its host itself, and is called back there. So sessions are counted by the
address that the call came from, which a caller cannot choose.
"""

from __future__ import annotations

from mqis.protocol.cmpo.partner_session import SETTING_UP, CmpoSession
from mqis.protocol.cmpo.settings import CmpoSettings
from mqis.runtime.peers import source_of


class Callers:
    """The sessions that partners asked for, by address."""

    def __init__(self, settings: CmpoSettings) -> None:
        self._settings = settings
        self._address: dict[CmpoSession, str] = {}
        self._sessions: dict[str, set[CmpoSession]] = {}

    def may_ask(self, address: str) -> bool:
        """Returns whether one more session may be asked for from this address."""
        held = self._sessions.get(source_of(address), set())
        setups = sum(session.state in SETTING_UP for session in held)
        limits = self._settings
        return (
            len(held) < limits.max_sessions_per_address and setups < limits.max_setups_per_address
        )

    def add(self, session: CmpoSession, address: str) -> None:
        """Notes the address that first asked for a session, unless this side did."""
        if not session.initiated_here and session not in self._address:
            self._address[session] = address
            self._sessions.setdefault(source_of(address), set()).add(session)

    def address(self, session: CmpoSession) -> str | None:
        """The address of the call that began a session; None if this side began it."""
        return self._address.get(session)

    def forget(self, session: CmpoSession) -> None:
        address = self._address.pop(session, None)
        if address is None:
            return
        key = source_of(address)
        self._sessions[key].discard(session)
        if not self._sessions[key]:
            del self._sessions[key]
