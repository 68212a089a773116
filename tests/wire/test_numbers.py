"""Numbers of the specifications, written out once more, so that no slip of one passes."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import pytest

from mqis.wire.cmp.packet import MsgTag
from mqis.wire.cmpo.codes import CmResult, ComProtocol, ResourceType, SessionRank, TeardownType
from mqis.wire.ldap.changes import ModifyKind
from mqis.wire.mqcn.notification import NotificationCommand
from mqis.wire.mqcn.notification_message import NotificationEvent
from mqis.wire.mqds.keys import KeyAlgorithm, ProviderType
from mqis.wire.mqds.machine_address import AddressType
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqdsrp.change import Command
from mqis.wire.mqdsrp.messages import MessageOperation, Sync0
from mqis.wire.mqqb.internal import InternalPacketType
from mqis.wire.mqqb.properties import MessageClass
from mqis.wire.mqqb.queuename import QueueKind
from mqis.wire.mqqb.securityheader import SenderIdType
from mqis.wire.mqsd.request import TopologyPacketType
from mqis.wire.pcap.captured import LinkType
from mqis.wire.pcap.tcp_udp import TcpFlags
from mqis.wire.rpc.epmapper import EpmStatus, Inquiry, VersionOption
from mqis.wire.rpc.pdu_bodies import ContextVerdict, NakReason, RejectReason
from mqis.wire.rpc.pdu_header import PacketType, PfcFlags
from mqis.wire.rpc.verification import VerificationCommand
from mqis.wire.security.acl import AceFlags, AceType
from mqis.wire.security.descriptor import Control

#: The members that have a number of their own, in the order of the text.
NUMBERS: dict[type[IntEnum] | type[IntFlag], dict[str, int]] = {
    # MS-CMP
    MsgTag: {
        "DISCONNECT": 0x1,
        "DISCONNECTED": 0x2,
        "CONNECTION_REQ_DENIED": 0x3,
        "PING": 0x4,
        "CONNECTION_REQ": 0x5,
        "USER_MESSAGE": 0xFFF,
    },
    # MS-CMPO
    SessionRank: {
        "PRIMARY": 1,
        "SECONDARY": 2,
    },
    # MS-CMPO
    TeardownType: {
        "FORCE": 0,
        "PROBLEM": 2,
    },
    # MS-CMPO
    ResourceType: {
        "CONNECTIONS": 0,
    },
    # MS-CMPO
    ComProtocol: {
        "IP_TCP": 0x1,
        "SPX": 0x2,
        "NET_BEUI": 0x4,
        "IP_UDP": 0x8,
        "LRPC": 0x20,
    },
    # MS-CMPO, MS-ERREF
    CmResult: {
        "OK": 0x0,
        "TEARING_DOWN": 0x80000119,
        "SESSION_DOWN": 0x80000120,
        "SERVER_NOT_READY": 0x80000123,
        "TIMED_OUT": 0x80000124,
        "OUT_OF_RESOURCES": 0x80000127,
        "VERSION_SET_NOT_SUPPORTED": 0x80000172,
        "PROTOCOL_NOT_SUPPORTED": 0x80000173,
        "FAIL": 0x80004005,
        "INVALID_ARGUMENT": 0x80070057,
        "ACCESS_DENIED": 0x80070005,
        "SERVER_UNAVAILABLE": 0x6BA,
        "SERVER_TOO_BUSY": 0x6BB,
        "PROCNUM_OUT_OF_RANGE": 0x6D1,
        "CALL_CANCELLED": 0x71A,
    },
    # MS-MQCN
    NotificationCommand: {
        "CREATE": 0,
        "UPDATE": 1,
        "DELETE": 2,
    },
    # MS-MQCN
    NotificationEvent: {
        "QUEUE_CREATION": 1,
        "QUEUE_UPDATE": 2,
        "QUEUE_DELETION": 3,
        "MACHINE_UPDATE": 4,
    },
    # MS-MQMQ
    AddressType: {
        "IP": 1,
        "IP_RAS": 2,
        "IPX": 3,
        "FOREIGN": 5,
    },
    # MS-MQMQ
    KeyAlgorithm: {
        "CALG_RSA_KEYX": 0xA400,
        "CALG_RSA_SIGN": 0x2400,
    },
    # MS-MQMQ
    ProviderType: {
        "PROV_RSA_FULL": 1,
        "PROV_RSA_AES": 24,
    },
    # MS-MQDS
    ObjectType: {
        "QUEUE": 1,
        "MACHINE": 2,
        "SITE": 3,
        "DELETEDOBJECT": 4,
        "CN": 5,
        "ENTERPRISE": 6,
        "USER": 7,
        "ROUTINGLINK": 8,
    },
    # MC-MQDSRP
    Command: {
        "CREATE": 0,
        "UPDATE": 1,
        "DELETE": 2,
        "SYNC": 3,
    },
    # MC-MQDSRP
    MessageOperation: {
        "CHANGE_PROPAGATION": 0,
        "CHANGE_REQUEST": 1,
        "SYNC_REQUEST": 2,
        "SYNC_REPLY": 3,
        "CHANGE_REPLY": 4,
        "ALREADY_PURGED": 5,
        "PSC_ACK": 6,
        "BSC_ACK": 7,
    },
    # MC-MQDSRP
    Sync0: {
        "NONE": 0,
        "MORE": 1,
        "COMPLETE": 2,
    },
    # MS-MQQB
    InternalPacketType: {
        "SESSION_ACK": 1,
        "ESTABLISH_CONNECTION": 2,
        "CONNECTION_PARAMETERS": 3,
    },
    # MS-MQMQ
    MessageClass: {
        "NORMAL": 0x0,
        "REPORT": 0x1,
        "ACK_REACH_QUEUE": 0x2,
        "ORDER_ACK": 0xFF,
        "ACK_RECEIVE": 0x4000,
        "NACK_BAD_DST_Q": 0x8000,
        "NACK_DELETED": 0x8001,
        "NACK_REACH_QUEUE_TIMEOUT": 0x8002,
        "NACK_Q_EXCEED_QUOTA": 0x8003,
        "NACK_ACCESS_DENIED": 0x8004,
        "NACK_HOP_COUNT_EXCEEDED": 0x8005,
        "NACK_BAD_SIGNATURE": 0x8006,
        "NACK_BAD_ENCRYPTION": 0x8007,
        "NACK_NOT_TRANSACTIONAL_Q": 0x8009,
        "NACK_NOT_TRANSACTIONAL_MSG": 0x800A,
        "NACK_UNSUPPORTED_CRYPTO_PROVIDER": 0x800B,
        "NACK_Q_DELETED": 0xC000,
        "NACK_Q_PURGED": 0xC001,
        "NACK_RECEIVE_TIMEOUT": 0xC002,
        "NACK_RECEIVE_REJECTED": 0xC004,
    },
    # MS-MQMQ
    QueueKind: {
        "NONE": 0,
        "SAME_AS_ADMIN": 1,
        "PRIVATE_AT_SOURCE": 2,
        "PRIVATE_AT_DESTINATION": 3,
        "PRIVATE_AT_ADMIN": 4,
        "PUBLIC": 5,
        "PRIVATE": 6,
        "DIRECT": 7,
    },
    # MS-MQMQ
    SenderIdType: {
        "NONE": 0,
        "SID": 1,
        "QUEUE_MANAGER": 2,
    },
    # MS-MQSD
    TopologyPacketType: {
        "REQUEST": 1,
        "REPLY": 2,
    },
    # the list of link types of tcpdump
    LinkType: {
        "NULL": 0x0,
        "ETHERNET": 0x1,
        "RAW_BSD": 0xC,
        "RAW_OPENBSD": 0xE,
        "RAW": 0x65,
        "LOOP": 0x6C,
        "LINUX_SLL": 0x71,
        "IPV4": 0xE4,
        "IPV6": 0xE5,
        "LINUX_SLL2": 0x114,
    },
    # C706, MS-RPCE
    ContextVerdict: {
        "ACCEPTANCE": 0,
        "USER_REJECTION": 1,
        "PROVIDER_REJECTION": 2,
        "NEGOTIATE_ACK": 3,
    },
    # C706
    RejectReason: {
        "NOT_SPECIFIED": 0,
        "ABSTRACT_SYNTAX_NOT_SUPPORTED": 1,
        "TRANSFER_SYNTAXES_NOT_SUPPORTED": 2,
        "LOCAL_LIMIT_EXCEEDED": 3,
    },
    # C706, MS-RPCE
    NakReason: {
        "NOT_SPECIFIED": 0,
        "TEMPORARY_CONGESTION": 1,
        "LOCAL_LIMIT_EXCEEDED": 2,
        "PROTOCOL_VERSION_NOT_SUPPORTED": 4,
        "AUTHENTICATION_TYPE_NOT_RECOGNIZED": 8,
        "INVALID_CHECKSUM": 9,
    },
    # C706
    Inquiry: {
        "ALL": 0,
        "BY_INTERFACE": 1,
        "BY_OBJECT": 2,
        "BY_BOTH": 3,
    },
    # C706
    VersionOption: {
        "ALL": 1,
        "COMPATIBLE": 2,
        "EXACT": 3,
        "MAJOR_ONLY": 4,
        "UP_TO": 5,
    },
    # C706
    EpmStatus: {
        "OK": 0x0,
        "CANT_PERFORM": 0x16C9A0CD,
        "NOT_REGISTERED": 0x16C9A0D6,
    },
    # C706, MS-RPCE
    PacketType: {
        "REQUEST": 0,
        "RESPONSE": 2,
        "FAULT": 3,
        "BIND": 11,
        "BIND_ACK": 12,
        "BIND_NAK": 13,
        "ALTER_CONTEXT": 14,
        "ALTER_CONTEXT_RESP": 15,
        "AUTH3": 16,
        "SHUTDOWN": 17,
        "CO_CANCEL": 18,
        "ORPHANED": 19,
    },
    # MS-RPCE
    VerificationCommand: {
        "BITMASK_1": 1,
        "PCONTEXT": 2,
        "HEADER2": 3,
    },
    # RFC 4511 4.6
    ModifyKind: {
        "ADD": 0,
        "DELETE": 1,
        "REPLACE": 2,
    },
    # MS-DTYP
    AceType: {
        "ACCESS_ALLOWED": 0,
        "ACCESS_DENIED": 1,
        "SYSTEM_AUDIT": 2,
        "SYSTEM_ALARM": 3,
        "ACCESS_ALLOWED_COMPOUND": 4,
        "ACCESS_ALLOWED_OBJECT": 5,
        "ACCESS_DENIED_OBJECT": 6,
        "SYSTEM_AUDIT_OBJECT": 7,
        "SYSTEM_ALARM_OBJECT": 8,
        "ACCESS_ALLOWED_CALLBACK": 9,
        "ACCESS_DENIED_CALLBACK": 10,
        "ACCESS_ALLOWED_CALLBACK_OBJECT": 11,
        "ACCESS_DENIED_CALLBACK_OBJECT": 12,
        "SYSTEM_AUDIT_CALLBACK": 13,
        "SYSTEM_ALARM_CALLBACK": 14,
        "SYSTEM_AUDIT_CALLBACK_OBJECT": 15,
        "SYSTEM_ALARM_CALLBACK_OBJECT": 16,
        "SYSTEM_MANDATORY_LABEL": 17,
        "SYSTEM_RESOURCE_ATTRIBUTE": 18,
        "SYSTEM_SCOPED_POLICY_ID": 19,
    },
    # MS-DTYP
    AceFlags: {
        "OBJECT_INHERIT": 0x1,
        "CONTAINER_INHERIT": 0x2,
        "NO_PROPAGATE_INHERIT": 0x4,
        "INHERIT_ONLY": 0x8,
        "INHERITED": 0x10,
        "SUCCESSFUL_ACCESS": 0x40,
        "FAILED_ACCESS": 0x80,
    },
    # MS-DTYP
    Control: {
        "OWNER_DEFAULTED": 0x1,
        "GROUP_DEFAULTED": 0x2,
        "DACL_PRESENT": 0x4,
        "DACL_DEFAULTED": 0x8,
        "SACL_PRESENT": 0x10,
        "SACL_DEFAULTED": 0x20,
        "DACL_TRUSTED": 0x40,
        "SERVER_SECURITY": 0x80,
        "DACL_COMPUTED_INHERITANCE_REQUIRED": 0x100,
        "SACL_COMPUTED_INHERITANCE_REQUIRED": 0x200,
        "DACL_AUTO_INHERITED": 0x400,
        "SACL_AUTO_INHERITED": 0x800,
        "DACL_PROTECTED": 0x1000,
        "SACL_PROTECTED": 0x2000,
        "RM_CONTROL_VALID": 0x4000,
        "SELF_RELATIVE": 0x8000,
    },
}
#: C706, MS-RPCE: two flags share a bit, as one is for binds, one for calls.
PFC_FLAGS = {
    "FIRST": 0x01,
    "LAST": 0x02,
    "PENDING_CANCEL": 0x04,
    "SUPPORT_HEADER_SIGN": 0x04,
    "CONC_MPX": 0x10,
    "DID_NOT_EXECUTE": 0x20,
    "MAYBE": 0x40,
    "OBJECT_UUID": 0x80,
}
#: RFC 9293.
TCP_FLAGS = {"FIN": 0x01, "SYN": 0x02, "RST": 0x04, "PSH": 0x08, "ACK": 0x10}


@pytest.mark.parametrize("kind", NUMBERS, ids=lambda kind: kind.__name__)
def test_numbers(kind: type[IntEnum] | type[IntFlag]) -> None:
    found = {name: int(member) for name, member in kind.__members__.items()}
    assert found == NUMBERS[kind]


@pytest.mark.parametrize(("kind", "numbers"), [(PfcFlags, PFC_FLAGS), (TcpFlags, TCP_FLAGS)])
def test_flags_that_are_plain_numbers(kind: type, numbers: dict[str, int]) -> None:
    assert {name: value for name, value in vars(kind).items() if name.isupper()} == numbers
