"""The status codes of faults, written out once more."""

from __future__ import annotations

import pytest

from mqis.protocol.rpc.faults import FaultStatus, RpcFault, status_name

#: Windows errors (MS-ERREF 2.2), those of C706 appendix E, and one HRESULT (MS-ERREF 2.1).
STATUSES = {
    5: "access_denied",
    1725: "no_call_active",
    1775: "in_null_context",
    1780: "null_ref_pointer",
    1781: "enum_out_of_range",
    1782: "byte_count_too_small",
    1783: "bad_stub_data",
    1825: "sec_pkg_error",
    0x1C000006: "invalid_tag",
    0x1C000007: "invalid_bound",
    0x1C00000D: "cancel",
    0x1C000012: "unspec",
    0x1C00001A: "context_mismatch",
    0x1C00001B: "remote_no_memory",
    0x1C00001D: "unsupported_authn_level",
    0x1C010002: "op_rng_error",
    0x1C010003: "unk_if",
    0x1C01000B: "proto_error",
    0x1C010013: "out_args_too_big",
    0x1C010014: "server_too_busy",
    0x80090317: "context_expired",
}


@pytest.mark.parametrize(("status", "name"), STATUSES.items())
def test_statuses_by_number(status: int, name: str) -> None:
    assert status_name(status) == name
    assert str(RpcFault(status)) == f"the call failed (fault {name})"


def test_there_are_no_other_statuses() -> None:
    assert {int(status) for status in FaultStatus} == set(STATUSES)
    assert status_name(0x1C010004) == "0x1c010004"
