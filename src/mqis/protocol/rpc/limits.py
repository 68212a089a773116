"""What one peer may take. Every number that a stranger could drive up stands here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of a connection."""

    #: Bytes of one PDU. Peers never agree to more than this; an interface that moves much between
    #: partners of our own kind may offer more, up to 65,528.
    max_frag: int = 5840
    #: Stub bytes of one call, all fragments together; also the largest alloc_hint believed.
    max_stub: int = 4 * 1024 * 1024
    #: Calls that wait or run. More are left unread until one ends.
    max_calls: int = 64
    max_contexts: int = 1024
    max_security_contexts: int = 2049
    #: Of these, how many may be between two legs.
    max_unfinished_security_contexts: int = 16
    #: How deep callbacks and the calls inside them nest.
    max_callback_depth: int = 4
    #: Failed logons of one association, which then ends.
    max_failed_logons: int = 3
    #: From the connection to its first bind, and from the first leg of authentication to its last.
    bind_timeout_s: float = 30.0
    #: From the first byte of a PDU to its last.
    pdu_timeout_s: float = 30.0
    #: From the first fragment of a call to its last.
    call_timeout_s: float = 60.0
    #: Without a call or a byte. Context handles do not keep a connection: strangers get them too.
    idle_timeout_s: float = 900.0
