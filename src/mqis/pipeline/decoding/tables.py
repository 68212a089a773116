"""What decoding knows of each property, as arrays with the property's number as index."""

from __future__ import annotations

import numpy as np

from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY, object_type_of
from mqis.wire.mqds.catalogue import PROPERTIES
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import VarType

TOP = max(PROPERTIES) + 1
#: The ways in which a value is read; the size of a FIXED value is known by its type.
UNKNOWN, FIXED, TEXT, COUNTED, LISTED = range(5)
#: The NumPy types of numbers, and of the items of lists; a GUID has sixteen bytes.
NUMBERS = {
    VarType.I1: "<i1",
    VarType.UI1: "<u1",
    VarType.I2: "<i2",
    VarType.UI2: "<u2",
    VarType.I4: "<i4",
    VarType.UI4: "<u4",
    VarType.I8: "<i8",
    VarType.UI8: "<u8",
}
ITEMS = {
    VarType.VECTOR_UI2: "<u2",
    VarType.VECTOR_I4: "<i4",
    VarType.VECTOR_UI4: "<u4",
    VarType.VECTOR_UI8: "<u8",
    VarType.VECTOR_CLSID: "V16",
}
#: The size of the count in front of a list or of counted bytes.
COUNT_SIZE = 4

SHAPE = np.zeros(TOP, dtype=np.int8)
VT = np.zeros(TOP, dtype=np.int64)
#: The size of a fixed value, else 0; the size of one item of a list, else 1.
SIZE = np.zeros(TOP, dtype=np.int64)
ITEM_SIZE = np.ones(TOP, dtype=np.int64)
#: The number of bits that a number's sign is away from the top of 64, and whether it is signed.
UNUSED_BITS = np.zeros(TOP, dtype=np.uint64)
SIGNED = np.zeros(TOP, dtype=np.bool_)
IS_NUMBER = np.zeros(TOP, dtype=np.bool_)
#: The type of object that the property belongs to; by type, the property that identifies it.
OF_TYPE = np.zeros(TOP, dtype=np.int64)
IDENTIFIER = np.zeros(max(map(int, ObjectType)) + 1, dtype=np.int64)
#: The types of objects that a deletion can name.
DELETABLE = np.array([int(k) for k in ObjectType if k is not ObjectType.DELETEDOBJECT])


def _fill() -> None:
    for propid, entry in PROPERTIES.items():
        vt = entry.vt
        VT[propid] = int(vt)
        OF_TYPE[propid] = int(object_type_of(propid) or 0)
        if vt in NUMBERS:
            form = np.dtype(NUMBERS[vt])
            SHAPE[propid], SIZE[propid], IS_NUMBER[propid] = FIXED, form.itemsize, True
            UNUSED_BITS[propid], SIGNED[propid] = 64 - 8 * form.itemsize, form.kind == "i"
        elif vt is VarType.CLSID:
            SHAPE[propid], SIZE[propid] = FIXED, 16
        elif vt is VarType.LPWSTR:
            SHAPE[propid] = TEXT
        elif vt in (VarType.BLOB, VarType.VECTOR_UI1):
            SHAPE[propid] = COUNTED
        elif vt in ITEMS:
            SHAPE[propid], ITEM_SIZE[propid] = LISTED, np.dtype(ITEMS[vt]).itemsize
    for kind, identifier in IDENTIFIER_PROPERTY.items():
        IDENTIFIER[int(kind)] = int(identifier)


_fill()
