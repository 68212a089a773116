"""What the catalogue says of one property."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

#: Identifiers from here on are private to servers (MS-MQDS 2.2.10.1).
PRIVATE_FLOOR = 1000


class WriteRule(Enum):
    """What a table of MS-MQDS 3.1.4.21.8 does with a supplied value."""

    APPLY = "apply"  # the value is taken, perhaps after a conversion
    IGNORE = "ignore"  # accepted without effect
    INVALID = "invalid"  # the whole call fails
    UNLISTED = "unlisted"  # in no table: a create ignores it, an update fails


@dataclass(frozen=True, slots=True)
class Property:
    """One identifier: whose it is, what type its value has, who may read and write it."""

    id: PropId
    object_type: ObjectType
    vt: VarType
    readable: bool
    on_update: WriteRule
    on_create: WriteRule
    default: PropVariant | None

    @property
    def name(self) -> str:
        """The specification's name, PROPID_Q_LABEL."""
        return f"PROPID_{self.id.name}"

    @property
    def private(self) -> bool:
        return self.id >= PRIVATE_FLOOR
