"""A request and a response of every operation that captures are decoded for."""

from __future__ import annotations

from typing import Any

from mqis.testing.cmp import user_message
from mqis.wire.cmp.builder import BoxcarBuilder
from mqis.wire.cmp.packet import Packet
from mqis.wire.cmpo import ixnremote as oletx
from mqis.wire.cmpo.ixnremote import BindVersionSet, BoundVersionSet
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.query_stubs import ColumnSet
from mqis.wire.ndr import ContextHandle
from mqis.wire.propvariant import PropVariant, VarType
from mqis.wire.rpc import epmapper, mgmt
from mqis.wire.rpc.interfaces import Operation
from mqis.wire.rpc.tower import Tower

HANDLE = ContextHandle(Guid(b"an opened handle"))
NONE = ContextHandle.NULL
THING = Guid(b"something stored")
LABEL = PropVariant(VarType.LPWSTR, "Orders of today")
EMPTY = PropVariant(VarType.NULL, None)
TOWER = epmapper.TowerOctets(Tower.tcp(dscomm.SYNTAX, 2103, "10.0.0.1").to_bytes())
IDS, SIZE = (int(PropId.Q_LABEL), int(PropId.Q_QUOTA)), 64
QUEUE, PATH = 1, "pec1\\orders"
PROPS = ((LABEL, PropVariant(VarType.UI4, 7)), b"", 0)
SECURITY = dscomm.SecurityGot(bytes(SIZE), 20, b"", 0)
BOXCAR = BoxcarBuilder(
    [
        Packet.connection_req(1, 0x101),
        user_message(1, 0x2001, b"prepare", is_master=True),
        Packet.denied(2, 0x80070005),
        Packet.ping(),
    ]
).to_bytes()
_NAMES = (str(THING), "PEC1", str(Guid.NULL))
_BLOB = bytes.fromhex("08000000 21000000")
_BUILT = oletx.ContextBuilt(str(THING), BoundVersionSet(2, 1, 5), HANDLE, 0)
_BUILD = oletx.BuildContext(
    1,
    BindVersionSet(1, 2, 1, 1, 1, 5),
    *_NAMES,
    str(THING),
    oletx.NO_GUID,
    BoundVersionSet.NONE,
    _BLOB,
)
_RESULT, _HANDLE_GOT = dscomm.DirectoryResult(0), dscomm.HandleGot(HANDLE, 0)

Sample = tuple[Operation[Any, Any], Any, Any, dict[str, int]]

DSCOMM: list[Sample] = [
    (
        dscomm.CREATE_OBJECT,
        dscomm.CreateObject(QUEUE, PATH, b"sd", IDS[:1], (LABEL,), None),
        dscomm.Created(THING, 0),
        {},
    ),
    (dscomm.DELETE_OBJECT, dscomm.ByPath(QUEUE, PATH), _RESULT, {}),
    (
        dscomm.GET_PROPS,
        dscomm.GetProps(QUEUE, PATH, IDS, (VarType.NULL, VarType.NULL), HANDLE, 0),
        dscomm.PropsGot(*PROPS),
        {"cp": 2},
    ),
    (dscomm.SET_PROPS, dscomm.SetProps(QUEUE, PATH, IDS[:1], (LABEL,)), _RESULT, {}),
    (
        dscomm.GET_OBJECT_SECURITY,
        dscomm.GetSecurity(QUEUE, PATH, 7, SIZE, HANDLE, 0),
        SECURITY,
        {"length": SIZE},
    ),
    (dscomm.SET_OBJECT_SECURITY, dscomm.SetSecurity(QUEUE, PATH, 4, b"sd"), _RESULT, {}),
    (
        dscomm.LOOKUP_BEGIN,
        dscomm.LookupBegin(None, None, ColumnSet(IDS), None, HANDLE),
        _HANDLE_GOT,
        {},
    ),
    (
        dscomm.LOOKUP_NEXT,
        dscomm.LookupNext(HANDLE, 4, HANDLE, 0),
        dscomm.LookupGot(*PROPS),
        {"size": 4},
    ),
    (dscomm.LOOKUP_END, dscomm.HandleGiven(HANDLE), _HANDLE_GOT, {}),
    (dscomm.DELETE_OBJECT_GUID, dscomm.ByGuid(QUEUE, THING), _RESULT, {}),
    (
        dscomm.GET_PROPS_GUID,
        dscomm.GetPropsGuid(QUEUE, THING, IDS, (VarType.NULL, VarType.NULL), HANDLE, 0),
        dscomm.PropsGot(*PROPS),
        {"cp": 2},
    ),
    (dscomm.SET_PROPS_GUID, dscomm.SetPropsGuid(QUEUE, THING, IDS[:1], (LABEL,)), _RESULT, {}),
    (
        dscomm.GET_OBJECT_SECURITY_GUID,
        dscomm.GetSecurityGuid(QUEUE, THING, 7, SIZE, HANDLE, 0),
        SECURITY,
        {"length": SIZE},
    ),
    (dscomm.SET_OBJECT_SECURITY_GUID, dscomm.SetSecurityGuid(2, THING, 4, b"sd"), _RESULT, {}),
    (
        dscomm.QM_SET_MACHINE_PROPERTIES,
        dscomm.SetMachineProperties("pec1", IDS[:1], (LABEL,), 5),
        _RESULT,
        {},
    ),
    (
        dscomm.CREATE_SERVERS_CACHE,
        dscomm.CreateServersCache(0, None, HANDLE, 0),
        dscomm.ServersCache(1, dscomm.StringPointer("Delft;\\10pec1"), b"", 0),
        {},
    ),
    (
        dscomm.QM_GET_OBJECT_SECURITY,
        dscomm.GetMachineSecurity(2, THING, 7, SIZE, 5, HANDLE, 0),
        SECURITY,
        {"length": SIZE},
    ),
    (
        dscomm.VALIDATE_SERVER,
        dscomm.ValidateServer(THING, 0, 5, 100, b"token"),
        _HANDLE_GOT,
        {},
    ),
    (dscomm.CLOSE_SERVER_HANDLE, dscomm.HandleGiven(HANDLE), _HANDLE_GOT, {}),
    (dscomm.GET_SERVER_PORT, dscomm.GetServerPort(1), dscomm.ServerPort(2103), {}),
]
CALLBACKS: list[Sample] = [
    (
        dscomm.SET_MACHINE_PROPERTIES_SIGN_PROC,
        dscomm.Challenge(bytes(32), 5, b"", 128),
        dscomm.ChallengeAnswer(b"signature", 0),
        {"answer_max": 128},
    ),
    (
        dscomm.GET_OBJECT_SECURITY_CHALLENGE,
        dscomm.Challenge(bytes(32), 5, b"", 128),
        dscomm.ChallengeAnswer(b"signature", 0),
        {"answer_max": 128},
    ),
    (
        dscomm.INIT_SEC_CTX,
        dscomm.InitSecCtx(5, b"token", 100),
        dscomm.InitSecCtxAnswer(b"another", 0),
        {"buffer_size": 100},
    ),
]
DSCOMM2: list[Sample] = [
    (
        dscomm2.GET_COMPUTER_SITES,
        dscomm2.GetComputerSites("pec1", HANDLE, 0),
        dscomm2.ComputerSites((THING,), b"", 0),
        {},
    ),
    (
        dscomm2.GET_PROPS_EX,
        dscomm.GetProps(QUEUE, PATH, IDS, (VarType.NULL, VarType.NULL), HANDLE, 0),
        dscomm.PropsGot(*PROPS),
        {"cp": 2},
    ),
    (
        dscomm2.GET_PROPS_GUID_EX,
        dscomm.GetPropsGuid(QUEUE, THING, IDS, (VarType.NULL, VarType.NULL), HANDLE, 0),
        dscomm.PropsGot(*PROPS),
        {"cp": 2},
    ),
    (
        dscomm2.BEGIN_DELETE_NOTIFICATION,
        dscomm2.BeginDeleteNotification(PATH, HANDLE),
        _HANDLE_GOT,
        {},
    ),
    (dscomm2.NOTIFY_DELETE, dscomm.HandleGiven(HANDLE), _RESULT, {}),
    (
        dscomm2.END_DELETE_NOTIFICATION,
        dscomm.HandleGiven(HANDLE),
        dscomm2.HandleReturned(NONE),
        {},
    ),
    (dscomm2.IS_SERVER_GC, dscomm2.NoParameters(), dscomm2.IsServerGC(1), {}),
    (
        dscomm2.GET_GC_LIST_IN_DOMAIN,
        dscomm2.GetGCListInDomain("pec1", "corp", HANDLE, 0),
        dscomm2.GCList("10gc1", b"", 0),
        {},
    ),
]
IXN_REMOTE: list[Sample] = [
    (oletx.POKE, oletx.Poke(2, *_NAMES, _BLOB), oletx.RemoteResult(0), {}),
    (oletx.BUILD_CONTEXT, _BUILD, _BUILT, {}),
    (
        oletx.NEGOTIATE_RESOURCES,
        oletx.NegotiateResources(HANDLE, 0, 64),
        oletx.ResourcesNegotiated(64, 0),
        {},
    ),
    (oletx.SEND_RECEIVE, oletx.SendReceive(HANDLE, 4, BOXCAR), oletx.RemoteResult(0), {}),
    (
        oletx.TEAR_DOWN_CONTEXT,
        oletx.TearDownContext(HANDLE, 1, 0),
        oletx.ContextTornDown(NONE, 0),
        {},
    ),
    (oletx.BEGIN_TEAR_DOWN, oletx.BeginTearDown(HANDLE, 2), oletx.RemoteResult(0x80000119), {}),
    (oletx.POKE_W, oletx.Poke(2, *_NAMES, _BLOB), oletx.RemoteResult(0), {}),
    (oletx.BUILD_CONTEXT_W, _BUILD, _BUILT, {}),
]
EPMAPPER: list[Sample] = [
    (
        epmapper.EPT_LOOKUP,
        epmapper.LookupAsked(0, None, None, 1, NONE, 4),
        epmapper.LookupFound(NONE, (epmapper.EndpointEntry(Guid.NULL, TOWER, "DS"),), 0),
        {"max_entries": 4},
    ),
    (
        epmapper.EPT_MAP,
        epmapper.MapAsked(Guid.NULL, TOWER, NONE, 4),
        epmapper.MapFound(NONE, (TOWER, None), 0),
        {"max_towers": 4},
    ),
    (
        epmapper.EPT_LOOKUP_HANDLE_FREE,
        epmapper.HandleAsked(HANDLE),
        epmapper.HandleFreed(NONE, 0),
        {},
    ),
]
MGMT: list[Sample] = [
    (mgmt.INQ_IF_IDS, mgmt.Nothing(), mgmt.InqIfIds(None, 0), {}),
    (mgmt.INQ_STATS, mgmt.StatisticsAsked(4), mgmt.StatisticsGiven((1, 2, 3, 4), 0), {}),
    (mgmt.IS_SERVER_LISTENING, mgmt.Nothing(), mgmt.Listening(0, 1), {}),
    (mgmt.STOP_SERVER_LISTENING, mgmt.Nothing(), mgmt.Status(5), {}),
    (
        mgmt.INQ_PRINC_NAME,
        mgmt.PrincipalAsked(10, 16),
        mgmt.Principal("pec1", 0),
        {"size": 16},
    ),
]
