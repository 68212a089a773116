"""The status codes of faults: Windows system errors in decimal, C706 appendix E, SSPI."""

from __future__ import annotations

from mqis.protocol.rpc.faults import FaultStatus

PUBLISHED = {
    "ACCESS_DENIED": 5,
    "NO_CALL_ACTIVE": 1725,
    "IN_NULL_CONTEXT": 1775,
    "NULL_REF_POINTER": 1780,
    "ENUM_OUT_OF_RANGE": 1781,
    "BYTE_COUNT_TOO_SMALL": 1782,
    "BAD_STUB_DATA": 1783,
    "SEC_PKG_ERROR": 1825,
    "INVALID_TAG": 0x1C000006,
    "INVALID_BOUND": 0x1C000007,
    "CANCEL": 0x1C00000D,
    "UNSPEC": 0x1C000012,
    "CONTEXT_MISMATCH": 0x1C00001A,
    "REMOTE_NO_MEMORY": 0x1C00001B,
    "UNSUPPORTED_AUTHN_LEVEL": 0x1C00001D,
    "OP_RNG_ERROR": 0x1C010002,
    "UNK_IF": 0x1C010003,
    "PROTO_ERROR": 0x1C01000B,
    "OUT_ARGS_TOO_BIG": 0x1C010013,
    "SERVER_TOO_BUSY": 0x1C010014,
    "CONTEXT_EXPIRED": 0x80090317,
}


def test_faults_have_their_published_numbers() -> None:
    assert {status.name: int(status) for status in FaultStatus} == PUBLISHED
