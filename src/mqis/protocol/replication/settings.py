"""Times and limits of replication: the text's product notes, and where it has none, ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """The defaults are what the product notes of MC-MQDSRP give, as corrected by the errata."""

    #: Propagation timers within a site and between sites (notes 2 to 6); the own Site object's
    #: intervals come before them (E62).
    intrasite_s: float = 2.0
    intersite_s: float = 10.0
    #: After a message to a neighbour the next changes wait this long, so that they share one. The
    #: first change after a pause does not wait at all.
    gather_s: float = 0.05
    #: A neighbour hears the numbers at least this often (note 12).
    heartbeat_s: float = 1200.0
    #: An unanswered sync request is sent again after this, then after twice that, and so on (E05).
    retry_s: float = 60.0
    max_retry_s: float = 1200.0
    #: How long a change may take at another server, and where that one has to pass it on (note
    #: 11); and when the request is repeated.
    reply_wait_s: float = 10.0
    relayed_wait_s: float = 20.0
    repeat_s: float = 4.0
    #: Backup controllers acknowledge after the first, then every second time (notes 7, 8).
    first_bsc_ack_s: float = 5.0
    bsc_ack_s: float = 43200.0

    #: Tombstones of this many last changes are kept (3.1.7.2.9), and how often that is looked at.
    purge_buffer: int = 1024
    purge_step: int = 256
    #: An authority hears each time that this many changes more have come: with 256, whenever the
    #: eighth byte of the number starts again (E24).
    ack_step: int = 256
    #: Changes that wait for a gap to close (3.1.7.2.2).
    max_pending: int = 100
    #: One message holds no more changes, and stops growing at this size (E53, E54).
    max_changes: int = 1000
    max_bytes: int = 1 << 20
    #: Changes waiting for one neighbour; beyond, it is told to ask instead.
    max_available: int = 20_000
    #: A number that is further ahead is nobody's (a restored authority numbers on from the clock).
    max_jump: int = 1 << 52
    #: What a restored authority skips at least, so that no number that somebody has seen comes
    #: again.
    restore_jump: int = 1 << 20
    #: How long a restored authority waits for servers that do not answer.
    recovery_wait_s: float = 120.0
    recovery_retry_s: float = 15.0
    #: An object that could not be taken this often is set aside (E56).
    max_failures: int = 3
    #: Answers to change requests that are remembered, and for how long.
    max_replies: int = 10_000
    reply_memory_s: float = 86_400.0
    #: They are looked through after so many new ones.
    forget_step: int = 256
    #: Whether other servers are believed for changes that give power over others (``trust``).
    forwarded_powers: bool = False
    #: A request whose requester's clock is further ahead of ours is refused. Not more than the
    #: above: what is forgotten then is never in the future, so it locks nobody out.
    max_ahead_s: float = 86_400.0
    #: After an authority was restored it takes the clocks of servers that it has never heard of to
    #: be this far ahead, and their requests for older by as much.
    clock_skew_s: float = 1.0


DEFAULTS = ReplicationSettings()
