"""Counters of replication since the start, for monitoring. No decision depends on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    #: Changes that this server made as an authority, and those of them that another asked for.
    made: int = 0
    decided: int = 0
    #: Changes of other authorities that were put into the replica.
    applied: int = 0
    #: Requests for what is missing, repetitions included, and replies that were taken.
    sync_requests: int = 0
    sync_replies: int = 0
    #: Full synchronisations of a partition: begun and come to their end.
    sync0_started: int = 0
    sync0_completed: int = 0
    #: Requests of others, answered with changes or with the word that only sync0 helps.
    syncs_served: int = 0
    #: Change requests that were passed on for another server, and those that nobody answered.
    relayed_requests: int = 0
    unanswered_requests: int = 0
