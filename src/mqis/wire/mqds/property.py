"""An entry of the property catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType

#: The first identifier that is private to servers (MS-MQDS 2.2.10.1).
PRIVATE_FLOOR = 1000


class WriteRule(Enum):
    """The effect of a supplied value, by the tables of MS-MQDS 3.1.4.21.8."""

    APPLY = "apply"  # the value is taken, perhaps after a conversion
    IGNORE = "ignore"  # accepted without effect
    INVALID = "invalid"  # the whole call fails
    UNLISTED = "unlisted"  # in no table: a create ignores it, an update fails


@dataclass(frozen=True, slots=True)
class Property:
    """One property: its object type, its value's type, its access rules and its default."""

    id: PropId
    object_type: ObjectType
    vt: VarType
    readable: bool
    on_update: WriteRule
    on_create: WriteRule
    default: PropVariant | None

    @property
    def name(self) -> str:
        """The specification's name, such as PROPID_Q_LABEL."""
        return f"PROPID_{self.id.name}"

    @property
    def private(self) -> bool:
        return self.id >= PRIVATE_FLOOR

    @property
    def settable(self) -> bool:
        return self.on_update is WriteRule.APPLY

    @property
    def settable_at_create(self) -> bool:
        return self.on_create is WriteRule.APPLY
