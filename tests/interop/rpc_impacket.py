"""The example interface "shapes" in impacket's words, as far as its NDR goes."""

from __future__ import annotations

from typing import Any

from impacket.dcerpc.v5 import transport
from impacket.dcerpc.v5.dtypes import BOOLEAN, DWORD, LONG, LPWSTR, NULL, ULONGLONG, USHORT
from impacket.dcerpc.v5.ndr import (
    NDRCALL,
    NDRPOINTER,
    NDRSTRUCT,
    NDRUniConformantArray,
    NDRUniConformantVaryingArray,
)
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_WINNT,
    DCERPC_v5,
    DCERPCException,
)

from examples.shapes.host import DOMAIN, PASSWORD, USER
from examples.shapes.interface import SYNTAX
from mqis.wire.rpc.interfaces import SyntaxId
from tests.waiting import DEADLINE_S

NDR64 = ("71710533-BEBA-4937-8319-B5DBEF9CCC36", "1.0")
NDR20 = ("8a885d04-1ceb-11c9-9fe8-08002b104860", "2.0")

__all__ = ["NDR20", "NDR64", "NULL", "DCERPCException"]


def uuid_of(syntax: SyntaxId) -> bytes:
    """The UUID and version of a syntax, in the form that impacket binds."""
    version = syntax.major | syntax.minor << 16
    return syntax.uuid.raw + version.to_bytes(4, "little")


SHAPES = uuid_of(SYNTAX)
_open: list[DCERPC_v5] = []


def connect(
    port: int,
    level: int = RPC_C_AUTHN_LEVEL_NONE,
    kind: int = RPC_C_AUTHN_WINNT,
    password: str = PASSWORD,
) -> DCERPC_v5:
    """Connected, not bound."""
    way = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    way.set_connect_timeout(DEADLINE_S)
    way.set_credentials(USER, password, DOMAIN)
    dce = way.get_dce_rpc()
    dce.set_auth_level(level)
    dce.set_auth_type(kind)
    dce.connect()
    _open.append(dce)
    return dce


def disconnect_all() -> None:
    while _open:
        _open.pop().disconnect()


# --- NDR ------------------------------------------------------------------------------------------


class BYTES(NDRUniConformantArray):  # type: ignore[misc]
    item = "c"


class PBYTES(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", BYTES),)


class HYPERS(NDRUniConformantArray):  # type: ignore[misc]
    item = ULONGLONG


class DWORDS(NDRUniConformantVaryingArray):  # type: ignore[misc]
    item = DWORD


class PDWORD(NDRPOINTER):  # type: ignore[misc]
    referent = (("Data", DWORD),)


class POINT(NDRSTRUCT):  # type: ignore[misc]
    structure = (("x", LONG), ("y", LONG))


class POINTS(NDRUniConformantArray):  # type: ignore[misc]
    item = POINT


class POLYLINE(NDRSTRUCT):  # type: ignore[misc]
    structure = (
        ("closed", BOOLEAN),
        ("width", USHORT),
        ("count", DWORD),
        ("points", POINTS),
    )


class HANDLE(NDRSTRUCT):  # type: ignore[misc]
    structure = (("octets", "20s=b'\0' * 20"),)

    def getAlignment(self) -> int:  # noqa: N802
        return 4


class Pointers(NDRCALL):  # type: ignore[misc]
    opnum = 3
    structure = (
        ("ref", DWORD),
        ("unique", PDWORD),
        ("full", PDWORD),
        ("shared", PDWORD),
    )


class PointersResponse(NDRCALL):  # type: ignore[misc]
    structure = (
        ("unique", PDWORD),
        ("total", ULONGLONG),
        ("nulls", DWORD),
        ("same", "<B=0"),
    )


class Polyline(NDRCALL):  # type: ignore[misc]
    opnum = 5
    structure = (("line", POLYLINE),)


class PolylineResponse(NDRCALL):  # type: ignore[misc]
    structure = (("line", POLYLINE),)


class OpenPile(NDRCALL):  # type: ignore[misc]
    opnum = 8
    structure = (("height", DWORD),)


class OpenPileResponse(NDRCALL):  # type: ignore[misc]
    structure = (("handle", HANDLE),)


class Take(NDRCALL):  # type: ignore[misc]
    opnum = 9
    structure = (("handle", HANDLE), ("count", DWORD))


class TakeResponse(NDRCALL):  # type: ignore[misc]
    structure = (("taken", DWORD), ("numbers", DWORDS))


class ClosePile(NDRCALL):  # type: ignore[misc]
    opnum = 10
    structure = (("handle", HANDLE),)


class ClosePileResponse(NDRCALL):  # type: ignore[misc]
    structure = (("handle", HANDLE),)


class Mirror(NDRCALL):  # type: ignore[misc]
    opnum = 11
    structure = (("size", DWORD), ("octets", PBYTES))


class MirrorResponse(NDRCALL):  # type: ignore[misc]
    structure = (("size", DWORD), ("octets", PBYTES))


class Squares(NDRCALL):  # type: ignore[misc]
    opnum = 12
    structure = (("first", DWORD), ("count", DWORD))


class SquaresResponse(NDRCALL):  # type: ignore[misc]
    structure = (("squares", HYPERS),)


class Fail(NDRCALL):  # type: ignore[misc]
    opnum = 14
    structure = (("status", DWORD),)


class FailResponse(NDRCALL):  # type: ignore[misc]
    structure = (("never", LONG),)


class WhoAmI(NDRCALL):  # type: ignore[misc]
    opnum = 15
    structure: tuple[Any, ...] = ()


class WhoAmIResponse(NDRCALL):  # type: ignore[misc]
    structure = (("name", LPWSTR), ("level", DWORD))


# --- calls ----------------------------------------------------------------------------------------


def call(dce: DCERPC_v5, request: Any) -> Any:
    """impacket takes the last four bytes of an answer for a status, unless told not to."""
    return dce.request(request, checkError=False)


def mirror(dce: DCERPC_v5, octets: bytes) -> bytes:
    request = Mirror()
    request["size"] = len(octets)
    request["octets"] = octets
    return b"".join(call(dce, request)["octets"])


def who_am_i(dce: DCERPC_v5) -> tuple[str, int]:
    answer = call(dce, WhoAmI())
    name = answer["name"]
    return (name.removesuffix("\0") if isinstance(name, str) else ""), answer["level"]
