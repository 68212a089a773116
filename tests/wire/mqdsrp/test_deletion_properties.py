"""The properties of a deleted object, as a change carries them (MC-MQDSRP 3.1.1.2.2)."""

from __future__ import annotations

import pytest

from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.propertylist import decode_list
from mqis.wire.propvariant import Value, VarType
from mqis.wire.reader import Reader

_ID = bytes(range(16))


@pytest.mark.req("MQDSRP-3.1.1.2.2-04")
@pytest.mark.parametrize(
    ("propid", "octets", "vt", "value"),
    [
        (1405, _ID, VarType.CLSID, Guid(_ID)),
        (1402, _ID, VarType.CLSID, Guid(_ID)),
        (1401, b"\x08\0\0\0" + _ID[:8], VarType.BLOB, _ID[:8]),
        (1403, b"\x01", VarType.UI1, 1),
        (1404, b"\x07", VarType.UI1, 7),
    ],
)
def test_numbers_and_types(propid: int, octets: bytes, vt: VarType, value: Value) -> None:
    reader = Reader(propid.to_bytes(4, "little") + octets)
    [(found, variant)] = decode_list(reader, 1)
    assert (found, variant.vt, variant.value) == (propid, vt, value)
    assert reader.remaining == 0
    assert PROPERTIES[propid].object_type is ObjectType.DELETEDOBJECT
