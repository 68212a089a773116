"""Limits on every resource of a server that a peer could exhaust."""

from __future__ import annotations

from dataclasses import dataclass

#: The memory of a security context and of a presentation context, in bytes, as it is charged.
SECURITY_CONTEXT_BYTES, PRESENTATION_CONTEXT_BYTES = 16 * 1024, 256
#: What a connection may keep without a charge: a logon, and some interfaces. The number of
#: connections bounds it, so that a user can log on whatever strangers have taken.
LOGON_BYTES = 24 * 1024


@dataclass(frozen=True, slots=True)
class RpcLimits:
    """The limits of one connection."""

    #: Bytes of one PDU. Other implementations never agree to more; an interface that transfers
    #: much between servers of this implementation may offer more, up to 65,528.
    max_frag: int = 5840
    #: Stub bytes of one call, all fragments together; also the largest alloc_hint believed.
    max_stub: int = 4 * 1024 * 1024
    #: Calls that wait or run. No more are read until one ends.
    max_calls: int = 64
    max_contexts: int = 1024
    max_security_contexts: int = 2049
    #: The same on a connection over which nobody with a name has logged on.
    max_strangers_security_contexts: int = 8
    #: Those of them that may be between two legs.
    max_unfinished_security_contexts: int = 16
    #: The nesting depth of callbacks and the calls inside them.
    max_callback_depth: int = 4
    #: Failed logons after which an association ends.
    max_failed_logons: int = 3
    #: Seconds from the connection to its first bind, and from the first leg of authentication to
    #: its last.
    bind_timeout_s: float = 30.0
    #: Seconds from the first byte of a PDU to its last.
    pdu_timeout_s: float = 30.0
    #: Seconds from the first fragment of a call to its last.
    call_timeout_s: float = 60.0
    #: Seconds without a call or a byte. Context handles do not keep a connection open, since
    #: anonymous callers get them too.
    idle_timeout_s: float = 900.0
