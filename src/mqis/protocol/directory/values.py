"""From a supplied value to the stored one: conversions and checks of MS-MQDS 3.1.4.21.8."""

from __future__ import annotations

from mqis.protocol.directory.types.catalogue import ROWS
from mqis.protocol.directory.types.checks import check_of, refusal_of
from mqis.protocol.directory.types.row import Check
from mqis.protocol.errors import DirectoryError
from mqis.wire.errors import WireError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

_CHECKS: dict[int, Check] = {
    row.id: check for row in ROWS.values() if (check := check_of(row)) is not None
}


def stored_value(propid: PropId, variant: PropVariant) -> PropVariant:
    """Returns the value to store for a supplied one, or raises ``DirectoryError``."""
    entry = PROPERTIES[propid]
    if variant.vt is not entry.vt:
        raise DirectoryError(
            HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
            f"{entry.name} is {entry.vt}, not {variant.vt}",
        )
    check = _CHECKS.get(propid)
    if check is None:
        return variant
    try:
        checked = check(variant.value)
        return variant if checked is variant.value else PropVariant(variant.vt, checked)
    except (ValueError, WireError) as error:
        raise DirectoryError(refusal_of(ROWS[propid]), f"{entry.name}: {error}") from error
