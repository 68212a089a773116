"""impacket against our directory server: no line of our client or of our stubs is used."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
    DCERPC_v5,
)

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.sddl import parse_sddl
from tests.interop import mqds_impacket as mqds
from tests.interop.mqds_impacket import (
    BLOB_,
    CLSID,
    LPWSTR_,
    NULL,
    UI1,
    UI4,
    VT_NULL,
    DCERPCException,
    Plain,
    ask,
    connect,
    disconnect_all,
    handle,
    plain,
    put_properties,
    variant,
)
from tests.interop.rpc_threads import in_thread
from tests.protocol.directory.world import World, blob
from tests.runtime.directory.serving import Served, serving

pytestmark = pytest.mark.interop

QUEUE, MACHINE, SITE, ENTERPRISE, USER = 1, 2, 3, 6, 7
INTEGRITY, PRIVACY = RPC_C_AUTHN_LEVEL_PKT_INTEGRITY, RPC_C_AUTHN_LEVEL_PKT_PRIVACY
C14 = UUID(int=0x14)
ORDERS = UUID(int=0x101)
SITE_A = UUID(int=0xA)
DESCRIPTOR = parse_sddl("O:BAG:SYD:(A;;0x20020;;;WD)").to_bytes()
OK, ACCESS_DENIED, NOT_FOUND = 0, 0xC00E0025, 0xC00E050F
INVALID, ILLEGAL_PROPID, QUEUE_EXISTS = 0xC00E0006, 0xC00E0039, 0xC00E0005
TOO_SMALL, NO_MORE_DATA, WRONG_TYPE = 0xC00E0023, 0xC00E0523, 0xC00E0506
ILLEGAL_VT, ENTERPRISE_OPERATION, MQCOLUMNS = 0xC00E0019, 0xC00E0071, 0xC00E0038


@pytest.fixture
def served() -> Iterator[Served]:
    world = World()
    world.update_event(world.one(ObjectType.QUEUE), {1101: blob(DESCRIPTOR)})
    with in_thread(serving(world)) as found:
        yield found
        disconnect_all()


@pytest.fixture(params=[INTEGRITY, PRIVACY], ids=["integrity", "privacy"])
def admin(served: Served, request: pytest.FixtureRequest) -> DCERPC_v5:
    return connect(served.port, "admin", request.param)


def validate(dce: DCERPC_v5) -> bytes:
    """With no token: the handle of an empty context."""
    call = mqds.S_DSValidateServer()
    call["pguidEnterpriseId"] = bytes(16)
    call["fSetupMode"] = 0
    call["dwContext"] = 7
    call["dwClientBuffMaxSize"] = 0
    call["dwClientBuffSize"] = 0
    got = ask(dce, call)
    assert got["ErrorCode"] == OK
    octets: bytes = got["pphServerAuth"]["octets"]
    assert any(octets)
    return octets


def create(dce: DCERPC_v5, kind: int, path: str, **given: object) -> tuple[int, UUID | None]:
    call = mqds.S_DSCreateObject()
    call["dwObjectType"] = kind
    call["pwcsPathName"] = path + "\0"
    descriptor = given.get("descriptor")
    call["dwSDLength"] = len(descriptor) if isinstance(descriptor, bytes) else 0
    call["SecurityDescriptor"] = descriptor if descriptor else NULL
    put_properties(call, given["properties"])  # type: ignore[arg-type]
    call["pObjGuid"] = bytes(16)
    got = ask(dce, call)
    guid = got["pObjGuid"]
    return got["ErrorCode"], UUID(bytes_le=guid) if guid else None


def get(
    dce: DCERPC_v5, auth: bytes, kind: int, target: str | UUID, *ids: int, vt: int = VT_NULL
) -> tuple[int, list[Plain]]:
    call = mqds.S_DSGetProps() if isinstance(target, str) else mqds.S_DSGetPropsGuid()
    call["dwObjectType"] = kind
    if isinstance(target, str):
        call["pwcsPathName"] = target + "\0"
    else:
        call["pGuid"] = target.bytes_le
    put_properties(call, {propid: variant(vt, 1 if vt == UI4 else None) for propid in ids})
    call["phServerAuth"] = handle(auth)
    call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
    got = ask(dce, call)
    assert b"".join(got["pbServerSignature"]) == bytes(mqds.SIGNATURE_SIZE)
    return got["ErrorCode"], [plain(value) for value in got["apVar"]]


def change(
    dce: DCERPC_v5, kind: int, target: str | UUID, properties: dict[int, mqds.PROPVARIANT]
) -> int:
    call = mqds.S_DSSetProps() if isinstance(target, str) else mqds.S_DSSetPropsGuid()
    call["dwObjectType"] = kind
    if isinstance(target, str):
        call["pwcsPathName"] = target + "\0"
    else:
        call["pGuid"] = target.bytes_le
    put_properties(call, properties)
    code: int = ask(dce, call)["ErrorCode"]
    return code


def delete(dce: DCERPC_v5, kind: int, target: str | UUID) -> int:
    call = mqds.S_DSDeleteObject() if isinstance(target, str) else mqds.S_DSDeleteObjectGuid()
    call["dwObjectType"] = kind
    if isinstance(target, str):
        call["pwcsPathName"] = target + "\0"
    else:
        call["pGuid"] = target.bytes_le
    code: int = ask(dce, call)["ErrorCode"]
    return code


def security(  # noqa: PLR0917
    dce: DCERPC_v5, auth: bytes, kind: int, path: str, information: int, length: int
) -> tuple[int, int, bytes]:
    call = mqds.S_DSGetObjectSecurity()
    call["dwObjectType"] = kind
    call["pwcsPathName"] = path + "\0"
    call["SecurityInformation"] = information
    call["nLength"] = length
    call["phServerAuth"] = handle(auth)
    call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
    got = ask(dce, call)
    data = b"".join(got["pSecurityDescriptor"])
    assert len(data) == length
    return got["ErrorCode"], got["lpnLengthNeeded"], data


def lookup_begin(
    dce: DCERPC_v5,
    auth: bytes,
    columns: list[int],
    where: list[tuple[int, int, mqds.PROPVARIANT]] | None = None,
    sort: list[tuple[int, int]] | None = None,
) -> tuple[int, bytes]:
    call = mqds.S_DSLookupBegin()
    call["pwcsContext"] = NULL
    call["pColumns"]["cCol"] = len(columns)
    call["pColumns"]["aCol"] = columns
    if where is None:
        call["pRestriction"] = NULL
    else:
        call["pRestriction"]["cRes"] = len(where)
        for propid, relation, value in where:
            entry = mqds.MQPROPERTYRESTRICTION()
            entry["rel"], entry["prop"], entry["prval"] = relation, propid, value
            call["pRestriction"]["paPropRes"].append(entry)
    if sort is None:
        call["pSort"] = NULL
    else:
        call["pSort"]["cCol"] = len(sort)
        for column, order in sort:
            key = mqds.MQSORTKEY()
            key["propColumn"], key["dwOrder"] = column, order
            call["pSort"]["aCol"].append(key)
    call["phServerAuth"] = handle(auth)
    got = ask(dce, call)
    return got["ErrorCode"], got["pHandle"]["octets"]


def lookup_next(dce: DCERPC_v5, auth: bytes, lookup: bytes, size: int) -> list[Plain]:
    call = mqds.S_DSLookupNext()
    call["Handle"] = handle(lookup)
    call["dwSize"] = size
    call["phServerAuth"] = handle(auth)
    call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
    got = ask(dce, call)
    assert got["ErrorCode"] == OK
    assert got["dwOutSize"] == len(got["pbBuffer"])
    return [plain(value) for value in got["pbBuffer"]]


def lookup_end(dce: DCERPC_v5, lookup: bytes) -> tuple[int, bytes]:
    call = mqds.S_DSLookupEnd()
    call["phContext"] = handle(lookup)
    got = ask(dce, call)
    return got["ErrorCode"], got["phContext"]["octets"]


def servers(dce: DCERPC_v5, auth: bytes, index: int) -> tuple[int, str | None]:
    call = mqds.S_DSCreateServersCache()
    call["pdwIndex"] = index
    call["lplpSiteServers"] = NULL
    call["phServerAuth"] = handle(auth)
    call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
    got = ask(dce, call)
    assert got["pdwIndex"] == index
    text = got["lplpSiteServers"]
    return got["ErrorCode"], text.removesuffix("\0") if text else None


# --- the calls that matter ------------------------------------------------------------------------


def test_validate_and_close(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    call = mqds.S_DSCloseServerHandle()
    call["pphServerAuth"] = handle(auth)
    got = ask(admin, call)
    assert (got["ErrorCode"], got["pphServerAuth"]["octets"]) == (OK, bytes(20))
    with pytest.raises(DCERPCException, match=r"context_mismatch|0x1c00001a"):
        ask(admin, call)


def test_life_of_a_queue(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    given = {
        108: variant(LPWSTR_, "Orders ✉"),
        105: variant(UI4, 4711),
        104: variant(UI1, 1),
        102: variant(CLSID, C14),
    }
    code, guid = create(admin, QUEUE, "C14\\new", properties=given)
    assert code == OK
    assert guid is not None
    shown = ["Orders ✉", 4711, 1, C14, guid]
    assert get(admin, auth, QUEUE, "C14\\new", 108, 105, 104, 102, 101) == (OK, shown)
    assert get(admin, auth, QUEUE, guid, 108, 105, 104, 102, 101) == (OK, shown)
    assert change(admin, QUEUE, "c14\\NEW", {108: variant(LPWSTR_, "renamed")}) == OK
    assert change(admin, QUEUE, guid, {105: variant(UI4, 1), 104: variant(UI1, 0)}) == OK
    assert get(admin, auth, QUEUE, guid, 104, 108, 105) == (OK, [0, "renamed", 1])
    assert delete(admin, QUEUE, guid) == OK
    assert get(admin, auth, QUEUE, guid, 101)[0] == NOT_FOUND
    assert delete(admin, QUEUE, "C14\\new") == NOT_FOUND
    again, _ = create(admin, QUEUE, "C14\\new", properties=given, descriptor=DESCRIPTOR)
    assert again == OK
    assert delete(admin, QUEUE, "C14\\new") == OK


@pytest.mark.parametrize("count", range(1, 6))
def test_variants_of_every_alignment(served: Served, admin: DCERPC_v5, count: int) -> None:
    """Paths and values of different lengths move everything behind them around."""
    auth = validate(admin)
    path = "C14\\" + "q" * count
    given = {108: variant(LPWSTR_, "x" * count), 105: variant(UI4, count), 104: variant(UI1, 1)}
    code, guid = create(admin, QUEUE, path, properties=given, descriptor=DESCRIPTOR)
    assert code == OK
    assert get(admin, auth, QUEUE, path, 104, 105, 108, 101) == (
        OK,
        [1, count, "x" * count, guid],
    )


def test_lookup(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    for n in range(5):
        given = {108: variant(LPWSTR_, "mine" if n % 2 else "other"), 105: variant(UI4, n)}
        assert create(admin, QUEUE, f"C15\\q{n}", properties=given)[0] == OK
    where = [(108, 4, variant(LPWSTR_, "OTHER")), (105, 2, variant(UI4, 0))]
    code, lookup = lookup_begin(admin, auth, [103, 105], where, [(105, 1)])
    assert code == OK
    assert lookup_next(admin, auth, lookup, 1) == []
    assert lookup_next(admin, auth, lookup, 3) == ["C15\\q4", 4]
    assert lookup_next(admin, auth, lookup, 128) == ["C15\\q2", 2]
    assert lookup_next(admin, auth, lookup, 128) == []
    assert lookup_end(admin, lookup) == (OK, bytes(20))
    code, everything = lookup_begin(admin, auth, [101])
    assert len(lookup_next(admin, auth, everything, 128)) == 8
    assert lookup_end(admin, everything) == (OK, bytes(20))
    assert lookup_begin(admin, auth, [101, 203]) == (MQCOLUMNS, bytes(20))
    assert lookup_begin(admin, auth, []) == (MQCOLUMNS, bytes(20))


def test_servers_cache(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    got = [servers(admin, auth, index) for index in range(4)]
    assert got == [
        (OK, "Alpha;\\10PSC1"),
        (OK, "Beta;\\10PSC2"),
        (OK, "Far;\\"),
        (NO_MORE_DATA, None),
    ]


def test_security(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    code, needed, _ = security(admin, auth, QUEUE, "C14\\orders", 7, 0)
    assert (code, needed) == (TOO_SMALL, len(DESCRIPTOR))
    code, needed, data = security(admin, auth, QUEUE, "C14\\orders", 7, needed + 5)
    assert (code, needed) == (OK, len(DESCRIPTOR))
    assert data == DESCRIPTOR + bytes(5)
    assert security(admin, auth, USER, "alice", 7, 0)[0] == WRONG_TYPE
    other = parse_sddl("D:(A;;0x20;;;BA)").to_bytes()
    call = mqds.S_DSSetObjectSecurity()
    call["dwObjectType"] = QUEUE
    call["pwcsPathName"] = "C14\\orders\0"
    call["SecurityInformation"] = 4
    call["pSecurityDescriptor"] = other
    call["nLength"] = len(other)
    assert ask(admin, call)["ErrorCode"] == OK
    whole = parse_sddl("O:BAG:SYD:(A;;0x20;;;BA)").to_bytes()
    assert security(admin, auth, QUEUE, "C14\\orders", 7, len(whole)) == (OK, len(whole), whole)


def test_computer_sites(served: Served) -> None:
    """dscomm2 on a connection of its own, so with an auth handle that is another client's."""
    dce = connect(served.port, "admin", INTEGRITY)
    auth = validate(dce)
    other = dce.alter_ctx(mqds.DSCOMM2)
    call = mqds.S_DSGetComputerSites()
    call["pwcsPathName"] = "C14\0"
    call["phServerAuth"] = handle(auth)
    call["pdwServerSignatureSize"] = mqds.SIGNATURE_SIZE
    got = ask(other, call)
    sites = [UUID(bytes_le=site["Data"]) for site in got["ppguidSites"]]
    assert (got["ErrorCode"], got["pdwNumberOfSites"], sites) == (OK, 1, [SITE_A])


def test_server_port(served: Served, admin: DCERPC_v5) -> None:
    served.context.listens_on(served.port)
    call = mqds.S_DSGetServerPort()
    call["fIP"] = 1
    assert ask(admin, call)["port"] == served.port
    call["fIP"] = 2
    with pytest.raises(DCERPCException, match=r"rpc_x_bad_stub_data|0x000006f7"):
        ask(admin, call)


# --- what goes wrong ------------------------------------------------------------------------------


def test_failure_codes(served: Served, admin: DCERPC_v5) -> None:
    auth = validate(admin)
    label = {108: variant(LPWSTR_, "x")}
    assert create(admin, QUEUE, "C14\\orders", properties=label)[0] == QUEUE_EXISTS
    assert create(admin, QUEUE, "C99\\q", properties=label)[0] == 0xC00E000D
    assert create(admin, ENTERPRISE, "E", properties=label)[0] == ENTERPRISE_OPERATION
    assert create(admin, 9, "x", properties=label)[0] == INVALID
    assert create(admin, MACHINE, "C16", properties=label)[0] == ILLEGAL_PROPID
    assert get(admin, auth, QUEUE, "C14\\orders", 1101)[0] == ILLEGAL_PROPID
    assert get(admin, auth, QUEUE, "C14\\orders", 103, vt=UI4)[0] == ILLEGAL_VT
    assert get(admin, auth, MACHINE, "C99", 203)[0] == NOT_FOUND
    assert get(admin, auth, QUEUE, "C14\\orders", 123)[0] == 0x8000500D
    assert change(admin, QUEUE, ORDERS, {101: variant(CLSID, C14)}) == 0xC00E003E
    assert change(admin, SITE, "Alpha", {1302: variant(BLOB_, b"x")}) == ILLEGAL_PROPID
    assert delete(admin, USER, "alice") == INVALID


def test_without_authentication(served: Served) -> None:
    nobody = connect(served.port, level=RPC_C_AUTHN_LEVEL_NONE)
    auth = validate(nobody)
    assert get(nobody, auth, QUEUE, "C14\\orders", 101) == (OK, [ORDERS])
    assert change(nobody, QUEUE, ORDERS, {108: variant(LPWSTR_, "x")}) == ACCESS_DENIED
    assert delete(nobody, QUEUE, ORDERS) == ACCESS_DENIED
    code, lookup = lookup_begin(nobody, auth, [101])
    queues = [UUID(int=number) for number in (0x100, 0x101, 0x102)]
    assert (code, lookup_next(nobody, auth, lookup, 128)) == (OK, queues)


def test_somebody_without_rights(served: Served) -> None:
    bob = connect(served.port, "bob", PRIVACY)
    assert change(bob, QUEUE, ORDERS, {108: variant(LPWSTR_, "x")}) == ACCESS_DENIED
    code, guid = create(bob, SITE, "Gamma", properties={304: variant(LPWSTR_, "PSC")})
    assert (code, guid) == (ACCESS_DENIED, UUID(int=0))


def test_nothing_is_left_when_a_client_goes(served: Served) -> None:
    dce = connect(served.port, "admin", INTEGRITY)
    auth = validate(dce)
    assert lookup_begin(dce, auth, [101])[0] == OK
    assert served.counters()["lookups"] == 1
    # The fixture looks at all counters once the connection is closed.
