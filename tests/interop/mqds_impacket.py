"""Methods of dscomm and dscomm2 in impacket's words: an independent client of the directory.

Structures are written down from the IDL of MS-MQDS 6, with as many arms of PROPVARIANT as the
tests need. Nothing here is made from our own descriptions.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.dtypes import DWORD, GUID, LPWSTR, NULL, PGUID, UCHAR, USHORT, WSTR
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRPOINTER,
    NDRSTRUCT,
    NDRUNION,
    NDRUniConformantArray,
    NDRUniConformantVaryingArray,
)
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_WINNT,
    DCERPC_v5,
    DCERPCException,
)
from impacket.uuid import uuidtup_to_bin

from tests.waiting import DEADLINE_S

__all__ = ["NULL", "DCERPCException"]

DSCOMM = uuidtup_to_bin(("77df7a80-f298-11d0-8358-00a024c480a8", "1.0"))
DSCOMM2 = uuidtup_to_bin(("708cca10-9569-11d1-b2a5-0060977d8118", "1.0"))
UI1, UI4, LPWSTR_, BLOB_, CLSID, VT_NULL = 17, 19, 31, 65, 72, 1
VECTOR_CLSID = 0x1000 | CLSID
SIGNATURE_SIZE = 128

_open: list[DCERPC_v5] = []


def connect(
    port: int, name: str = "", level: int = RPC_C_AUTHN_LEVEL_NONE, interface: bytes = DSCOMM
) -> DCERPC_v5:
    """Connected and bound; the accounts of these tests have their names as passwords."""
    way = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    way.set_connect_timeout(DEADLINE_S)
    way.set_credentials(name, name, "LAB")
    dce = way.get_dce_rpc()
    dce.set_auth_level(level)
    dce.set_auth_type(RPC_C_AUTHN_WINNT)
    dce.connect()
    dce.bind(interface)
    _open.append(dce)
    return dce


def disconnect_all() -> None:
    while _open:
        _open.pop().disconnect()


# --- types ----------------------------------------------------------------------------------------


class BYTES(NDRUniConformantArray):  # type: ignore[misc]
    item = "c"


class PBYTES(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", BYTES),)


class VARYING_BYTES(NDRUniConformantVaryingArray):  # type: ignore[misc]  # noqa: N801
    item = "c"


class HANDLE(NDRSTRUCT):  # type: ignore[misc]
    structure = (("octets", "20s=b'\0' * 20"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class BLOB(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cbSize", DWORD), ("pBlobData", PBYTES))


class GUID_ARRAY(NDRUniConformantArray):  # type: ignore[misc]  # noqa: N801
    item = GUID


class PGUID_ARRAY(NDRPOINTER):  # type: ignore[misc]  # noqa: N801
    referent = (("Data", GUID_ARRAY),)


class CACLSID(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cElems", DWORD), ("pElems", PGUID_ARRAY))


class VARIANT_UNION(NDRUNION):  # type: ignore[misc]  # noqa: N801
    notAlign = True  # noqa: N815
    commonHdr = (("tag", USHORT),)  # noqa: N815
    union = {  # noqa: RUF012
        UI1: ("bVal", UCHAR),
        UI4: ("ulVal", DWORD),
        LPWSTR_: ("pwszVal", LPWSTR),
        BLOB_: ("blob", BLOB),
        CLSID: ("puuid", PGUID),
        VECTOR_CLSID: ("cauuid", CACLSID),
        VT_NULL: ("nothing", "0s=b''"),
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
    """As a parameter. impacket forgets that the count stands between it and its alignment."""

    item = PROPVARIANT

    def getData(self, soFar: int = 0) -> bytes:  # noqa: N802, N803
        data: bytes = super().getData(soFar + 4)
        return data


class VARYING_PROPVARIANTS(NDRUniConformantVaryingArray):  # type: ignore[misc]  # noqa: N801
    item = PROPVARIANT


class PROPIDS(NDRUniConformantArray):  # type: ignore[misc]
    item = "<L"


class PPROPIDS(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", PROPIDS),)


class MQPROPERTYRESTRICTION(NDRSTRUCT):  # type: ignore[misc]
    structure = (("rel", DWORD), ("prop", DWORD), ("prval", PROPVARIANT))

    def getAlignment(self) -> int:  # noqa: N802
        return 8


class RESTRICTIONS(NDRUniConformantArray):  # type: ignore[misc]
    item = MQPROPERTYRESTRICTION


class PRESTRICTIONS(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", RESTRICTIONS),)


class MQRESTRICTION(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cRes", DWORD), ("paPropRes", PRESTRICTIONS))


class PMQRESTRICTION(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", MQRESTRICTION),)


class MQCOLUMNSET(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cCol", DWORD), ("aCol", PPROPIDS))


class MQSORTKEY(NDRSTRUCT):  # type: ignore[misc]
    structure = (("propColumn", DWORD), ("dwOrder", DWORD))


class SORTKEYS(NDRUniConformantArray):  # type: ignore[misc]
    item = MQSORTKEY


class PSORTKEYS(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", SORTKEYS),)


class MQSORTSET(NDRSTRUCT):  # type: ignore[misc]
    structure = (("cCol", DWORD), ("aCol", PSORTKEYS))


class PMQSORTSET(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", MQSORTSET),)


class PPWSTR(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", LPWSTR),)


class GUIDS(NDRUniConformantVaryingArray):  # type: ignore[misc]
    item = GUID


class PGUIDS(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", GUIDS),)


# --- methods --------------------------------------------------------------------------------------

_PROPERTIES = (("cp", DWORD), ("aProp", PROPIDS), ("apVar", PROPVARIANTS))
_AUTH = (("phServerAuth", HANDLE), ("pdwServerSignatureSize", DWORD))
_SIGNED = (
    ("pbServerSignature", BYTES),
    ("pdwServerSignatureSize", DWORD),
    ("ErrorCode", DWORD),
)
_RESULT = (("ErrorCode", DWORD),)


class S_DSCreateObject(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 0
    structure = (
        ("dwObjectType", DWORD),
        ("pwcsPathName", LPWSTR),
        ("dwSDLength", DWORD),
        ("SecurityDescriptor", PBYTES),
        *_PROPERTIES,
        ("pObjGuid", PGUID),
    )


class S_DSCreateObjectResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pObjGuid", PGUID), *_RESULT)


class S_DSDeleteObject(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 1
    structure = (("dwObjectType", DWORD), ("pwcsPathName", WSTR))


class S_DSDeleteObjectResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = _RESULT


class S_DSGetProps(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 2
    structure = (("dwObjectType", DWORD), ("pwcsPathName", WSTR), *_PROPERTIES, *_AUTH)


class S_DSGetPropsResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("apVar", PROPVARIANTS), *_SIGNED)


class S_DSSetProps(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 3
    structure = (("dwObjectType", DWORD), ("pwcsPathName", WSTR), *_PROPERTIES)


class S_DSSetPropsResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = _RESULT


class S_DSGetObjectSecurity(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 4
    structure = (
        ("dwObjectType", DWORD),
        ("pwcsPathName", WSTR),
        ("SecurityInformation", DWORD),
        ("nLength", DWORD),
        *_AUTH,
    )


class S_DSGetObjectSecurityResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pSecurityDescriptor", BYTES), ("lpnLengthNeeded", DWORD), *_SIGNED)


class S_DSSetObjectSecurity(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 5
    structure = (
        ("dwObjectType", DWORD),
        ("pwcsPathName", WSTR),
        ("SecurityInformation", DWORD),
        ("pSecurityDescriptor", PBYTES),
        ("nLength", DWORD),
    )


class S_DSSetObjectSecurityResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = _RESULT


class S_DSLookupBegin(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 6
    structure = (
        ("pwcsContext", LPWSTR),
        ("pRestriction", PMQRESTRICTION),
        ("pColumns", MQCOLUMNSET),
        ("pSort", PMQSORTSET),
        ("phServerAuth", HANDLE),
    )


class S_DSLookupBeginResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pHandle", HANDLE), *_RESULT)


class S_DSLookupNext(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 7
    structure = (("Handle", HANDLE), ("dwSize", DWORD), *_AUTH)


class S_DSLookupNextResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("dwOutSize", DWORD), ("pbBuffer", VARYING_PROPVARIANTS), *_SIGNED)


class S_DSLookupEnd(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 8
    structure = (("phContext", HANDLE),)


class S_DSLookupEndResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("phContext", HANDLE), *_RESULT)


class S_DSDeleteObjectGuid(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 10
    structure = (("dwObjectType", DWORD), ("pGuid", GUID))


class S_DSDeleteObjectGuidResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = _RESULT


class S_DSGetPropsGuid(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 11
    structure = (("dwObjectType", DWORD), ("pGuid", PGUID), *_PROPERTIES, *_AUTH)


class S_DSGetPropsGuidResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("apVar", PROPVARIANTS), *_SIGNED)


class S_DSSetPropsGuid(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 12
    structure = (("dwObjectType", DWORD), ("pGuid", GUID), *_PROPERTIES)


class S_DSSetPropsGuidResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = _RESULT


class S_DSCreateServersCache(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 20
    structure = (("pdwIndex", DWORD), ("lplpSiteServers", PPWSTR), *_AUTH)


class S_DSCreateServersCacheResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pdwIndex", DWORD), ("lplpSiteServers", PPWSTR), *_SIGNED)


class S_DSValidateServer(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 22
    structure = (
        ("pguidEnterpriseId", GUID),
        ("fSetupMode", DWORD),
        ("dwContext", DWORD),
        ("dwClientBuffMaxSize", DWORD),
        ("pClientBuff", VARYING_BYTES),
        ("dwClientBuffSize", DWORD),
    )


class S_DSValidateServerResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pphServerAuth", HANDLE), *_RESULT)


class S_DSCloseServerHandle(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 23
    structure = (("pphServerAuth", HANDLE),)


class S_DSCloseServerHandleResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pphServerAuth", HANDLE), *_RESULT)


class S_DSGetServerPort(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 27
    structure = (("fIP", DWORD),)


class S_DSGetServerPortResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("port", DWORD),)


class S_DSGetComputerSites(NDRCALL):  # type: ignore[misc]  # noqa: N801
    opnum = 0
    structure = (("pwcsPathName", LPWSTR), *_AUTH)


class S_DSGetComputerSitesResponse(NDRCALL):  # type: ignore[misc]  # noqa: N801
    structure = (("pdwNumberOfSites", DWORD), ("ppguidSites", PGUIDS), *_SIGNED)


# --- values ---------------------------------------------------------------------------------------

Plain = int | str | bytes | UUID | list[UUID] | None
_ARMS = {UI1: "bVal", UI4: "ulVal"}


def variant(vt: int, value: Plain = None) -> PROPVARIANT:
    """A PROPVARIANT; VT_NULL without a value."""
    made = PROPVARIANT()
    made["vt"] = vt
    union = made["_varUnion"]
    union["tag"] = vt
    if isinstance(value, bytes):
        union["blob"]["cbSize"] = len(value)
        union["blob"]["pBlobData"] = value
    elif isinstance(value, str):
        union["pwszVal"] = value + "\0"
    elif isinstance(value, UUID):
        union["puuid"] = value.bytes_le
    elif isinstance(value, list):
        union["cauuid"]["cElems"] = len(value)
        elements = []
        for member in value:
            element = GUID()
            element["Data"] = member.bytes_le
            elements.append(element)
        union["cauuid"]["pElems"] = elements
    elif value is not None:
        union[_ARMS[vt]] = value
    return made


def plain(made: PROPVARIANT) -> Plain:
    vt, union = made["vt"], made["_varUnion"]
    if vt == BLOB_:
        return b"".join(union["blob"]["pBlobData"])
    if vt == LPWSTR_:
        text: str = union["pwszVal"]
        return text.removesuffix("\0")
    if vt == CLSID:
        return UUID(bytes_le=union["puuid"])
    if vt in _ARMS:
        number = union[_ARMS[vt]]
        return ord(number) if isinstance(number, bytes | str) else int(number)
    return None


def put_properties(call: NDRCALL, properties: dict[int, PROPVARIANT]) -> None:
    call["cp"] = len(properties)
    call["aProp"] = list(properties)
    for value in properties.values():
        call["apVar"].append(value)


def ask(dce: DCERPC_v5, call: NDRCALL) -> Any:
    """The answer, whatever its result."""
    return dce.request(call, checkError=False)


def handle(octets: bytes) -> HANDLE:
    made = HANDLE()
    made["octets"] = octets
    return made
