"""Mutations that drop one protection each, to show that hostile messages do harm without it.

Each function takes the original and returns the replacement without the protection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mqis.protocol.queueing import direct_messages
from mqis.protocol.replication import (
    acknowledging,
    change_requests,
    replays,
    sync_answers,
    synchronization,
    trust,
)
from mqis.protocol.replication.server_identity import Sender
from mqis.protocol.replication.work import Work
from mqis.wire.mqdsrp.messages import AlreadyPurged

_Any = Callable[..., Any]

# --- S01: signing = "none", and every sender is believed to be who it claims ----------------------


def _believed(_examine: _Any) -> _Any:
    return lambda message, policy, signer: (True, None)


S01 = ((direct_messages, "examine", _believed),)

# --- S02, S03: SEC-4-01 ---------------------------------------------------------------------------


def _unknown(_answer_to: _Any) -> _Any:
    return lambda work, request: None


def _never(_refusal: _Any) -> _Any:
    return lambda work, request: None


S02 = (replays, "answer_to", _unknown), (replays, "refusal", _never)
S03 = ((replays, "refusal", _never),)

# --- S04: SEC-3-04 --------------------------------------------------------------------------------


def _at_once(_receive: _Any) -> _Any:
    def receive(work: Work, sender: Sender, message: AlreadyPurged) -> None:
        state = work.partition(message.partition)
        if state is not None:
            work.put(replace(state, purged_seq=max(state.purged_seq, message.purged_seq)))

    return receive


S04 = ((synchronization, "receive_already_purged", _at_once),)

# --- S05 to S07: SEC-2-05, SEC-2-06 ---------------------------------------------------------------


def _for_anybody(_speaks_for: _Any) -> _Any:
    return lambda work, sender, request: True


def _everything(_check: _Any) -> _Any:
    return lambda requester, work, change: None


def _any_identity(_check_identity: _Any) -> _Any:
    return lambda view, change: None


S05 = ((change_requests, "speaks_for", _for_anybody),)
S06 = ((trust.Requester, "check", _everything),)
S07 = ((trust, "check_identity", _any_identity),)

# --- S08: 3.2.7.4 does not restrict the sender of an acknowledgement ------------------------------


def _anybody(_is: _Any) -> _Any:
    return lambda sender, neighbor: True


S08 = ((acknowledging, "_is", _anybody),)

# --- S09: 3.2.7.8 believes the scope of a request -------------------------------------------------


def _as_requested(_granted_scope: _Any) -> _Any:
    return lambda work, state, request: request.scope


S09 = ((sync_answers, "granted_scope", _as_requested),)
