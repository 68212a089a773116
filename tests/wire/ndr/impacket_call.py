"""The same S_DSCreateObject-like request, marshalled by mqis and by impacket's NDR classes.

Both start from the same plain values and end at bytes, and the other way round. impacket reads our
bytes. Its own are no reference: it aligns an array to its elements before the maximum count instead
of after it, and fills gaps with other bytes than zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from impacket.dcerpc.v5.dtypes import DWORD, LPWSTR, PGUID, UCHAR
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRPOINTER,
    NDRSTRUCT,
    NDRUNION,
    NDRUniConformantArray,
)

from mqis.wire import ndr
from mqis.wire.guid import Guid
from mqis.wire.propvariant import PropVariant, VarType

SAMPLE_GUID = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
PATH_NAME = "server170\\private$\\orders.incoming"
SECURITY_DESCRIPTOR = bytes(range(120))

Plain = tuple[int, VarType, int | str | bytes | Guid]

#: Twenty properties: identifier, type, value.
PROPERTIES: tuple[Plain, ...] = tuple(
    property_
    for n in range(4)
    for property_ in (
        (101 + 5 * n, VarType.UI1, n),
        (102 + 5 * n, VarType.UI4, 0x01020304 + n),
        (103 + 5 * n, VarType.LPWSTR, f"label of the queue {n}"),
        (104 + 5 * n, VarType.CLSID, SAMPLE_GUID),
        (105 + 5 * n, VarType.BLOB, bytes(range(40 + n))),
    )
)


# --- ours -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateObject:
    object_type: int
    path_name: str | None
    security_descriptor: bytes | None
    property_ids: tuple[int, ...]
    values: tuple[PropVariant, ...]
    object_guid: Guid | None


CREATE_OBJECT = ndr.Parameters(
    CreateObject,
    object_type=ndr.Range(ndr.U32, 1, 58),
    path_name=ndr.Unique(ndr.WSTRING),
    security_descriptor_length=ndr.Range(ndr.U32, 0, 524288),
    security_descriptor=ndr.Unique(ndr.Conformant(ndr.BYTE, size_is="security_descriptor_length")),
    count=ndr.Range(ndr.U32, 1, 128),
    property_ids=ndr.Conformant(ndr.U32, size_is="count"),
    values=ndr.Conformant(ndr.PROPVARIANT, size_is="count"),
    object_guid=ndr.Unique(ndr.GUID),
)


def our_request() -> CreateObject:
    return CreateObject(
        1,
        PATH_NAME,
        SECURITY_DESCRIPTOR,
        tuple([number for number, _, _ in PROPERTIES]),
        tuple([PropVariant(vt, value) for _, vt, value in PROPERTIES]),
        SAMPLE_GUID,
    )


def our_marshal() -> bytes:
    return CREATE_OBJECT.encode(our_request(), ndr.Syntax.NDR20)


def our_unmarshal(data: bytes) -> CreateObject:
    return CREATE_OBJECT.decode(data, ndr.Syntax.NDR20)


# --- impacket -------------------------------------------------------------------------------------


class BYTES(NDRUniConformantArray):  # type: ignore[misc]
    item = "c"


class PBYTES(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", BYTES),)


class BLOB(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cbSize", DWORD), ("pBlobData", PBYTES))


class VARIANT_UNION(NDRUNION):  # type: ignore[misc]  # noqa: N801
    notAlign = True  # noqa: N815
    union = {  # noqa: RUF012
        17: ("bVal", UCHAR),
        19: ("ulVal", DWORD),
        31: ("pwszVal", LPWSTR),
        65: ("blob", BLOB),
        72: ("puuid", PGUID),
    }

    def getAlignment(self) -> int:  # noqa: N802
        return 2


class PROPVARIANT(NDRSTRUCT):  # type: ignore[misc]
    structure = (
        ("vt", "<H=0"),
        ("wReserved1", "<B=0"),
        ("wReserved2", "<B=0"),
        ("wReserved3", "<L=0"),
        ("_varUnion", VARIANT_UNION),
    )

    def getAlignment(self) -> int:  # noqa: N802
        return 8


class PROPVARIANTS(NDRUniConformantArray):  # type: ignore[misc]
    item = PROPVARIANT


class PROPIDS(NDRUniConformantArray):  # type: ignore[misc]
    item = "<L"


class S_DSCreateObject(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 0
    structure = (
        ("dwObjectType", DWORD),
        ("pwcsPathName", LPWSTR),
        ("dwSDLength", DWORD),
        ("SecurityDescriptor", PBYTES),
        ("cp", DWORD),
        ("aProp", PROPIDS),
        ("apVar", PROPVARIANTS),
        ("pObjGuid", PGUID),
    )


_ARMS = {
    VarType.UI1: "bVal",
    VarType.UI4: "ulVal",
    VarType.LPWSTR: "pwszVal",
    VarType.CLSID: "puuid",
}


def impacket_variant(vt: VarType, value: int | str | bytes | Guid) -> PROPVARIANT:
    variant = PROPVARIANT()
    variant["vt"] = int(vt)
    union = variant["_varUnion"]
    union["tag"] = int(vt)
    if isinstance(value, bytes):
        union["blob"]["cbSize"] = len(value)
        union["blob"]["pBlobData"] = value
    elif isinstance(value, str):
        union["pwszVal"] = value + "\0"
    elif isinstance(value, Guid):
        union["puuid"] = value.raw
    else:
        union[_ARMS[vt]] = value
    return variant


def impacket_request() -> S_DSCreateObject:
    request = S_DSCreateObject()
    request["dwObjectType"] = 1
    request["pwcsPathName"] = PATH_NAME + "\0"
    request["dwSDLength"] = len(SECURITY_DESCRIPTOR)
    request["SecurityDescriptor"] = SECURITY_DESCRIPTOR
    request["cp"] = len(PROPERTIES)
    request["aProp"] = [number for number, _, _ in PROPERTIES]
    for _, vt, value in PROPERTIES:
        request["apVar"].append(impacket_variant(vt, value))
    request["pObjGuid"] = SAMPLE_GUID.raw
    return request


def impacket_marshal() -> bytes:
    data: bytes = impacket_request().getData()
    return data


def impacket_unmarshal(data: bytes) -> S_DSCreateObject:
    request = S_DSCreateObject()
    request.fromString(data)
    return request


def impacket_values(request: S_DSCreateObject) -> tuple[Plain, ...]:
    """Back to plain values, to see that impacket read what was written."""
    return tuple(
        (number, VarType(variant["vt"]), _plain(variant))
        for number, variant in zip(request["aProp"], request["apVar"], strict=True)
    )


def _plain(variant: PROPVARIANT) -> int | str | bytes | Guid:
    union, vt = variant["_varUnion"], VarType(variant["vt"])
    if vt is VarType.BLOB:
        return b"".join(union["blob"]["pBlobData"])
    if vt is VarType.LPWSTR:
        text: str = union["pwszVal"]
        return text.removesuffix("\0")
    if vt is VarType.CLSID:
        return Guid(union["puuid"])
    number = union[_ARMS[vt]]
    return ord(number) if isinstance(number, bytes | str) else int(number)
