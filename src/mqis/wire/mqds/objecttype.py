"""Object type codes (MS-MQDS 2.2.8)."""

from __future__ import annotations

from enum import IntEnum


class ObjectType(IntEnum):
    """The eight kinds of directory object."""

    QUEUE = 1
    MACHINE = 2
    SITE = 3
    DELETEDOBJECT = 4
    CN = 5
    ENTERPRISE = 6
    USER = 7
    ROUTINGLINK = 8

    @property
    def label(self) -> str:
        """The word that commands and exports use for the type."""
        return _LABELS[self]

    @classmethod
    def parse(cls, text: str) -> ObjectType:
        found = _BY_LABEL.get(text.lower())
        if found is None:
            raise ValueError(f"{text!r} is not an object type ({', '.join(_BY_LABEL)})")
        return found


_LABELS = {
    ObjectType.QUEUE: "queue",
    ObjectType.MACHINE: "machine",
    ObjectType.SITE: "site",
    ObjectType.DELETEDOBJECT: "deleted",
    ObjectType.CN: "network",
    ObjectType.ENTERPRISE: "enterprise",
    ObjectType.USER: "user",
    ObjectType.ROUTINGLINK: "link",
}
_BY_LABEL = {label: kind for kind, label in _LABELS.items()}
