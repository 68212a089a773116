"""One property of the catalogue.

``protocol.directory.types`` says what it means, and who may read and write it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import VarType


@dataclass(frozen=True, slots=True)
class Property:
    """One identifier: the type of object that has it, and the variant type of its value."""

    id: PropId
    object_type: ObjectType
    vt: VarType

    @property
    def name(self) -> str:
        """The specification's name, such as PROPID_Q_LABEL."""
        return f"PROPID_{self.id.name}"
