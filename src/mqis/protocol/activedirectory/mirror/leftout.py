"""The objects that a mirror left out and the values that do not fit, with their reasons.

Each is kept in the store beside the position, so that a mirror says "equal" only if it is, and
tries again whatever it left out when the thing changes that the object hangs on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Transaction, View
from mqis.texts import agreeing, shortened
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType

#: The family of the store's values; the key of each is the identifier of the object.
MIRROR_LEFT_OUT = "mirror_left_out"
#: Of a reason; what an attacker writes into an entry may be long.
_MOST_TEXT = 400


class LeftOutReason(StrEnum):
    """The reasons, in the words of ``--json``."""

    #: Another object of the store has its name: two computers with one cn.
    NAME = "name"
    #: The queue manager of a queue is left out itself.
    HOST = "host"
    #: A value that the object needs is garbled, or the store refuses it.
    VALUE = "value"
    #: The account sees the object and not what it is.
    UNREAD = "unread"
    #: The object is there, with a default instead of a value that does not fit.
    DEFAULT = "default"


#: One object, and several.
_WORDS = {
    LeftOutReason.NAME: ("whose name another has", "whose name another has"),
    LeftOutReason.HOST: ("whose queue manager is left out", "whose queue manager is left out"),
    LeftOutReason.VALUE: ("with a bad value", "with bad values"),
    LeftOutReason.UNREAD: ("that the account cannot read", "that the account cannot read"),
    LeftOutReason.DEFAULT: (
        "whose bad value has a default instead",
        "whose bad values have defaults instead",
    ),
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One object. ``kind`` None: nobody knows what it is."""

    reason: LeftOutReason
    detail: str
    kind: ObjectType | None = None
    #: The name that it would have in the store, or of its entry.
    name: str = ""
    #: The queue manager of a queue.
    host: Guid | None = None

    @property
    def is_held(self) -> bool:
        """Returns whether the store has the object all the same."""
        return self.reason is LeftOutReason.DEFAULT

    def __str__(self) -> str:
        return shortened(self.detail, _MOST_TEXT)

    def as_json(self, identifier: Guid) -> dict[str, object]:
        return {
            "id": str(identifier),
            "type": None if self.kind is None else self.kind.label,
            "name": self.name or None,
            "reason": self.reason.value,
            "detail": shortened(self.detail, _MOST_TEXT),
        }

    def to_bytes(self) -> bytes:
        values = {
            "reason": self.reason.value,
            "detail": shortened(self.detail, _MOST_TEXT),
            "kind": None if self.kind is None else int(self.kind),
            "name": self.name,
            "host": None if self.host is None else str(self.host),
        }
        return json.dumps({key: value for key, value in values.items() if value}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> LeftOut:
        try:
            return cls._from(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"the store's list of what the mirror left out is damaged ({error}); mirror into a "
                "new store"
            ) from error

    @classmethod
    def _from(cls, values: dict[str, Any]) -> LeftOut:
        kind, host = values.get("kind"), values.get("host")
        return cls(
            LeftOutReason(values["reason"]),
            str(values["detail"]),
            None if kind is None else ObjectType(kind),
            str(values.get("name", "")),
            None if host is None else Guid.parse(host),
        )


def nameless(entry: str) -> Guid:
    """Stands for an entry that shows no identifier: a digest of its name."""
    return Guid(sha256(entry.encode()).digest()[:16])


def read_left_out(view: View) -> dict[Guid, LeftOut]:
    """Everything that the mirror of this store lacks."""
    return {Guid(key): LeftOut.from_bytes(v) for key, v in view.states(MIRROR_LEFT_OUT)}


def keep_left_out(tx: Transaction, found: Mapping[Guid, LeftOut]) -> None:
    """Makes the list of the store this one; writes what differs only."""
    held = dict(tx.states(MIRROR_LEFT_OUT))
    wanted = {guid.raw: item.to_bytes() for guid, item in found.items()}
    for key in held.keys() - wanted.keys():
        tx.drop_state(MIRROR_LEFT_OUT, key)
    for key, value in wanted.items():
        if held.get(key) != value:
            tx.put_state(MIRROR_LEFT_OUT, key, value)


def summary(items: Iterable[LeftOut]) -> str:
    """The reasons with their numbers: ``2 whose name another has, 1 with a bad value``."""
    counts = Counter(item.reason for item in items)
    parts = (
        f"{counts[reason]:,} {agreeing(counts[reason], *words)}"
        for reason, words in _WORDS.items()
        if counts[reason]
    )
    return ", ".join(parts)
