"""Rate-limited log of refused messages: enough to see an attack, too few lines to be one.

In each minute the lines are limited for each reason of a peer, for each peer, and in total.
Refusals beyond that are counted, and the counts logged when the minute is over.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mqis.protocol.queueing.events import SessionClosed, SessionOpened
from mqis.wire.guid import Guid

log = logging.getLogger(__name__)

WINDOW_S = 60.0
PER_REASON, PER_PEER, TOGETHER = 3, 12, 60
#: Peers that are counted separately; the rest is counted together.
_MAX_PEERS = 1000
#: Sessions whose peers are remembered, because messages are judged after some have ended.
_MAX_SESSIONS = 1024
_OTHERS = "others"


@dataclass(slots=True)
class _Peer:
    reasons: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    left_out: int = 0


class RefusalLog:
    """The peers of sessions, and the counts of this minute."""

    def __init__(self, name_of: Callable[[Guid], str | None]) -> None:
        self._name_of = name_of
        self._sessions: OrderedDict[int, tuple[Guid, str]] = OrderedDict()
        self._peers: dict[str, _Peer] = {}
        self._lines = 0
        self._until = 0.0

    # --- who it is --------------------------------------------------------------------------------

    def opened(self, event: SessionOpened) -> None:
        self._sessions[event.session] = event.peer, event.address
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def session_refused(self, event: SessionClosed, now: float) -> None:
        """Logs a refused session; only its address is known for sure, not the name it claims."""
        text = f"connection from {event.address}"
        self._note(event.address, text, event.reason, now, logging.WARNING)

    def message_refused(
        self, session: int, sender: str, reason: str, now: float, level: int = logging.WARNING
    ) -> None:
        """Logs a refused message; ``sender`` is its sender by replication, '' for the session's."""
        peer, address = self._sessions.get(session, (None, ""))
        name = sender or ("" if peer is None else self._name_of(peer) or str(peer))
        where = f" at {address}" if address else ""
        shown = name or "nobody"
        self._note(shown, f"refused from {shown}{where}", reason, now, level)

    # --- how often --------------------------------------------------------------------------------

    def _note(self, key: str, text: str, reason: str, now: float, level: int) -> None:
        self.tell_left_out(now)
        if key not in self._peers and len(self._peers) >= _MAX_PEERS:
            key = _OTHERS
        peer = self._peers.setdefault(key, _Peer())
        full = peer.lines >= PER_PEER or self._lines >= TOGETHER
        if full or peer.reasons[reason] >= PER_REASON:
            peer.left_out += 1
            return
        peer.reasons[reason] += 1
        peer.lines += 1
        self._lines += 1
        log.log(level, "%s: %s", text, reason)

    def tell_left_out(self, now: float) -> None:
        """Logs the counts and begins another minute if this one is over."""
        if now < self._until:
            return
        self.close()
        self._until = now + WINDOW_S

    def close(self) -> None:
        """Logs the counts so far: a line for each of the most frequent peers, one for the rest."""
        counted = Counter({key: peer.left_out for key, peer in self._peers.items()})
        for key, count in counted.most_common(PER_PEER):
            if count:
                log.warning("refused from %s: %d more like these", key, count)
        rest = sum(sorted(counted.values(), reverse=True)[PER_PEER:])
        if rest:
            log.warning("refused from others: %d more", rest)
        self._peers.clear()
        self._lines = 0
