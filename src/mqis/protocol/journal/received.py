"""The changes that messages brought a server, until its journal says that they were applied.

A journal records every message that arrives, before the server judges it. Whoever can send one, can
have false changes written there. So changes are kept only if no refusal of their message follows;
the refusal of one change counts for all, because the same objection is recorded once. A change that
is applied while its own message is handled is taken from that message and from no other.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from mqis.wire.guid import Guid
from mqis.wire.journal import JournalRecord
from mqis.wire.mqdsrp.change import Command, DirectoryChange
from mqis.wire.mqqb.identifier import MessageIdentifier
from mqis.wire.seqnum import SequenceNumber

#: Received changes that are remembered until they are applied; most of them are at once.
MAX_WAITING = 200_000

_MessageKey = tuple[MessageIdentifier | None, int]
_Number = tuple[Guid, SequenceNumber, int]
_Place = tuple[Guid, Guid]


class ReceivedChanges:
    """Finds the change that a record says was applied."""

    def __init__(self) -> None:
        #: The message that arrived last, and its changes that were not applied so far.
        self._message: _MessageKey | None = None
        self._refused = False
        self._fresh: dict[_Number, DirectoryChange] = {}
        self._fresh_copies: dict[_Place, DirectoryChange] = {}
        #: Changes that wait for their turn.
        self._waiting: OrderedDict[_Number, DirectoryChange] = OrderedDict()
        #: Whole objects: a restored authority takes copies of others, under other numbers.
        self._copies: OrderedDict[_Place, DirectoryChange] = OrderedDict()

    def arrive(self, record: JournalRecord, changes: Iterable[DirectoryChange]) -> None:
        """Takes the changes of a message that was received."""
        self._settle()
        self._message, self._refused = _message_of(record), False
        for change in changes:
            self._fresh[change.partition, change.seq, int(change.command)] = change
            if change.guid is not None and change.command is Command.CREATE:
                self._fresh_copies[change.partition, change.guid] = change

    def refuse(self, record: JournalRecord) -> None:
        """Notes that a message, or a change of it, was refused."""
        if _message_of(record) == self._message:
            self._refused = True

    def applied(self, record: JournalRecord) -> DirectoryChange | None:
        """Returns the change that a record says was applied; None if no message had it."""
        if _message_of(record) != self._message:
            self._settle()
        key = record.partition, record.seq, int(record.operation)
        waiting = self._waiting.pop(key, None)
        return self._fresh.pop(key, None) or waiting or self._copy(record)

    def _copy(self, record: JournalRecord) -> DirectoryChange | None:
        if record.operation != Command.CREATE:
            return None
        place = record.partition, record.object_id
        fresh = None if self._refused else self._fresh_copies.get(place)
        return fresh or self._copies.get(place)

    def _settle(self) -> None:
        """Keeps what the last message leaves for later, which is nothing if it was refused."""
        if not self._refused:
            self._waiting.update(self._fresh)
            self._copies.update(self._fresh_copies)
            for kept in (self._waiting, self._copies):
                while len(kept) > MAX_WAITING:
                    kept.popitem(last=False)
        self._message, self._fresh, self._fresh_copies = None, {}, {}


def _message_of(record: JournalRecord) -> _MessageKey:
    return record.message, record.session
