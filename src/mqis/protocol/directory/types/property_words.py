"""The words for properties and for numbers in them, in both directions the same everywhere.

The command line, the console and the pipeline use these words.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.row_columns import PropertyRole, ValueMeaning
from mqis.wire.mqds.propid import PropId

#: The names of numbers by property: ``yes`` for a flag, ``IP`` for a protocol.
NUMBER_WORDS: dict[int, Mapping[int, str]] = {
    row.id: {0: "no", 1: "yes"} if row.meaning is ValueMeaning.FLAG else row.words or {}
    for row in ROWS.values()
    if row.meaning in (ValueMeaning.FLAG, ValueMeaning.WORD)
}


#: The words that mean the same for every type that has them.
COMMON_WORDS = {
    PropertyRole.NAME: "path",
    PropertyRole.IDENTIFIER: "id",
    PropertyRole.PARTITION: "partition",
    PropertyRole.SEQUENCE: "seq",
}


def property_word(propid: int) -> str:
    """The word for a property: ``label`` for Q_LABEL; the number of an unknown one."""
    if propid not in ROWS:
        return str(propid)
    role = ROWS[propid].role
    return (role and COMMON_WORDS.get(role)) or own_word(propid)


def own_word(propid: int) -> str:
    """The specification's name without PROPID and the letters of the type: ``pathname``."""
    return PropId(propid).name.partition("_")[2].lower()
