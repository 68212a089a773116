"""Change requests that come again: from a requester that waits, or from who recorded them.

A signature covers neither time nor addressee, so whoever has seen a request can send it again for
ever. The authority remembers its answers, which makes repetitions harmless, but not for ever. So
our own servers put the time into each request, as a number that only rises: microseconds since
1970, in SeqNumber of the change, which 3.1.7.1.1 sets to MIN and which no authority reads (3.2.7.2
takes its own next number). When an answer is forgotten its time stays behind as the requester's
horizon, and what is not above the horizon is not decided again.

A requester that never sent a time, such as a queue manager by the letter of the text, is served as
the text has it: its requests can be replayed once their answers are forgotten.
"""

from __future__ import annotations

import struct

from mqis.protocol.directory.objects import name_key
from mqis.protocol.replication.effects import Objection, RefusalReason
from mqis.protocol.replication.work import Work
from mqis.texts import duration
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import ChangeRequest
from mqis.wire.seqnum import SequenceNumber

_ANSWERS = "reply"
_ANSWER = struct.Struct(">Id")
#: By requester: the time of the last answer that was forgotten; 0: none was.
_HORIZONS = "horizon"
#: By partition: when this server last became its authority, or was restored; and how far ahead the
#: clocks of requesters may be that its store has never heard of.
_FLOORS = "floor"
_FLOOR = struct.Struct(">QQ")
#: By requester: how far its clock was ahead of ours at most; negative: behind.
_LEADS = "lead"
_LEAD = struct.Struct(">q")
_STAMPS, _LAST = "request", b"stamp"
_TIME = struct.Struct(">Q")
_US = 1_000_000


# --- the requester --------------------------------------------------------------------------------


def next_stamp(work: Work) -> SequenceNumber:
    """The time of a new request, above all that came before, whatever the clock does.

    It follows a clock that was set back only from so far ahead that nobody took those requests.
    """
    now, last = work.at.unix_us, _time(work, _STAMPS, _LAST) or 0
    stamp = now if last > now + _ahead_us(work) else max(now, last + 1)
    work.tx.put_state(_STAMPS, _LAST, _TIME.pack(stamp))
    return SequenceNumber(stamp)


# --- the authority --------------------------------------------------------------------------------


def answer_to(work: Work, request: ChangeRequest) -> int | None:
    """The answer that this very request got before; None: it is unknown, or forgotten.

    Identifiers without a time begin anew some day, so an old answer to one is none.
    """
    known = work.tx.state(_ANSWERS, _key(request))
    if known is None:
        return None
    result, at_unix = _ANSWER.unpack(known)
    fresh = at_unix + work.settings.reply_memory_s > work.at.unix
    return int(result) if fresh or _stamp(request) else None


def refusal(work: Work, request: ChangeRequest) -> Objection | None:
    """The reason not to decide a request that has no answer yet; None to decide it."""
    stamp, requester = _stamp(request), request.requester
    horizon = _time(work, _HORIZONS, name_key(requester).encode())
    if not stamp:
        if horizon is None:
            return None
        return Objection(
            RefusalReason.REPLAYED, f"a request without the time that {requester} sends"
        )
    ahead_us = stamp - work.at.unix_us
    if ahead_us > _ahead_us(work):
        return Objection(
            RefusalReason.CLOCK,
            f"the clock of {requester} is {duration(ahead_us / _US)} ahead of ours",
        )
    if horizon is not None and stamp <= horizon:
        return Objection(
            RefusalReason.REPLAYED,
            f"a request of {requester} that is too old, or by a clock that went back",
        )
    if stamp < _floor(work, request):
        return Objection(
            RefusalReason.REPLAYED,
            f"a request of {requester} from before this server was the authority",
        )
    return None


def remember(work: Work, request: ChangeRequest, result: int) -> None:
    """Keep the answer to a request that was just decided."""
    work.tx.put_state(_ANSWERS, _key(request), _ANSWER.pack(result, work.at.unix))
    requester = name_key(request.requester).encode()
    if _stamp(request):
        _note_clock(work, requester, _stamp(request))
    work.memory.answers += 1
    if work.memory.answers % work.settings.forget_step == 0:
        forget_old_answers(work)


def forget_old_answers(work: Work) -> None:
    """Answers are remembered for a day, and not more than a store should carry."""
    oldest = work.at.unix - work.settings.reply_memory_s
    answers = work.tx.states(_ANSWERS)
    aged = sorted((_ANSWER.unpack(value)[1], key) for key, value in answers)
    surplus = max(0, len(aged) - work.settings.max_replies)
    for index, (at_unix, key) in enumerate(aged):
        if index < surplus or at_unix < oldest:
            _forget(work, key)


def _forget(work: Work, key: bytes) -> None:
    requester, _, rest = key.partition(b"\0")
    if len(rest) > 4:
        stamp = int.from_bytes(rest[4:], "big")
        horizon = max(stamp, _time(work, _HORIZONS, requester) or 0)
        work.tx.put_state(_HORIZONS, requester, _TIME.pack(horizon))
    work.tx.drop_state(_ANSWERS, key)


def _note_clock(work: Work, requester: bytes, stamp: int) -> None:
    if work.tx.state(_HORIZONS, requester) is None:
        work.tx.put_state(_HORIZONS, requester, _TIME.pack(0))
    lead, known = stamp - work.at.unix_us, _lead(work, requester)
    if known is None or lead > known:
        work.tx.put_state(_LEADS, requester, _LEAD.pack(lead))


def _lead(work: Work, requester: bytes) -> int | None:
    known = work.tx.state(_LEADS, requester)
    return None if known is None else int(_LEAD.unpack(known)[0])


def raise_floor(work: Work, partition: Guid, *, served: bool) -> None:
    """Refuses all earlier requests from now on: this server no longer knows which were answered.

    That is so for a store that was restored, and for a server that takes another's place.
    ``served``: this store has answered some, and those that it forgot may be by fast clocks.
    """
    floor, margin = _stored_floor(work, partition)
    margin = max(margin, int(work.settings.clock_skew_s * _US) if served else 0)
    work.tx.put_state(_FLOORS, partition.raw, _FLOOR.pack(max(work.at.unix_us, floor), margin))


def _stored_floor(work: Work, partition: Guid) -> tuple[int, int]:
    known = work.tx.state(_FLOORS, partition.raw)
    if known is None:
        return 0, 0
    floor, margin = _FLOOR.unpack(known)
    return int(floor), int(margin)


def _floor(work: Work, request: ChangeRequest) -> int:
    """The floor by the clock of the requester, as far as that is known."""
    floor, margin = _stored_floor(work, request.partition)
    lead = _lead(work, name_key(request.requester).encode())
    return floor + (margin if lead is None else lead)


# --- both -----------------------------------------------------------------------------------------


def _key(request: ChangeRequest) -> bytes:
    stamp = _stamp(request)
    time = _TIME.pack(stamp) if stamp else b""
    requester = name_key(request.requester).encode()
    return requester + b"\0" + request.request_id.to_bytes(4, "big") + time


def _stamp(request: ChangeRequest) -> int:
    return request.change.seq.value


def _time(work: Work, family: str, key: bytes) -> int | None:
    known = work.tx.state(family, key)
    return None if known is None else int(_TIME.unpack(known)[0])


def _ahead_us(work: Work) -> int:
    return int(work.settings.max_ahead_s * _US)
