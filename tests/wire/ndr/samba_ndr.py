"""Runs under the system's Python: what Samba's libndr makes of calls that we can describe too.

One JSON document in, one out, so that a whole test run costs one process.

    in   [[name, argument]]
    out  [{"ndr20": hex, "big_endian": hex, "ndr64": hex}]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from samba.dcerpc import echo, epmapper, mgmt, misc
from samba.ndr import ndr_pack_in, ndr_pack_out


def tower() -> Any:
    """The worked tower: dscomm over NDR20, TCP 2105, 192.0.2.10."""
    interface = epmapper.epm_floor()
    interface.lhs.protocol = epmapper.EPM_PROTOCOL_UUID
    interface.lhs.lhs_data = bytes.fromhex("807adf7798f2d011835800a024c480a80100")
    interface.rhs = epmapper.epm_rhs_uuid()
    syntax = epmapper.epm_floor()
    syntax.lhs.protocol = epmapper.EPM_PROTOCOL_UUID
    syntax.lhs.lhs_data = bytes.fromhex("045d888aeb1cc9119fe808002b1048600200")
    syntax.rhs = epmapper.epm_rhs_uuid()
    connection = epmapper.epm_floor()
    connection.lhs.protocol = epmapper.EPM_PROTOCOL_NCACN
    connection.rhs = epmapper.epm_rhs_ncacn()
    tcp = epmapper.epm_floor()
    tcp.lhs.protocol = epmapper.EPM_PROTOCOL_TCP
    tcp.rhs = epmapper.epm_rhs_tcp()
    tcp.rhs.port = 2105
    ip = epmapper.epm_floor()
    ip.lhs.protocol = epmapper.EPM_PROTOCOL_IP
    ip.rhs = epmapper.epm_rhs_ip()
    ip.rhs.ipaddr = "192.0.2.10"
    made = epmapper.epm_twr_t()
    made.tower.floors = [interface, syntax, connection, tcp, ip]
    made.tower.num_floors = 5
    return made


def handle(uuid: str) -> Any:
    made = misc.policy_handle()
    made.uuid = misc.GUID(uuid)
    return made


def echo_data(data: str) -> Any:
    call = echo.EchoData()
    call.in_len = len(data)
    call.in_in_data = list(data.encode("ascii"))
    return call, ndr_pack_in


def test_call(text: str) -> Any:
    call = echo.TestCall()
    call.in_s1 = text
    return call, ndr_pack_in


def test_call_out(text: str | None) -> Any:
    call = echo.TestCall()
    call.out_s2 = text
    return call, ndr_pack_out


def test_call2(argument: list[Any]) -> Any:
    level, values = argument
    info = getattr(echo, f"info{level}")()
    if level <= 4:
        info.v = values[0]
    else:
        info.v1 = values[0]
    if level == 5:
        info.v2 = values[1]
    if level == 6:
        info.info1.v = values[1]
    if level == 7:
        info.info4.v = values[1]
    call = echo.TestCall2()
    call.in_level = level
    call.out_info = info
    call.result = 0
    return call, ndr_pack_out


def test_surrounding(values: list[int]) -> Any:
    call = echo.TestSurrounding()
    data = echo.Surrounding()
    data.x = len(values)
    data.surrounding = values
    call.in_data = data
    return call, ndr_pack_in


def test_enum(tag: int) -> Any:
    call = echo.TestEnum()
    call.in_foo1 = tag
    pair = echo.Enum2()
    pair.e1, pair.e2 = echo.ECHO_ENUM2, echo.ECHO_ENUM1_32
    call.in_foo2 = pair
    call.in_foo3 = tag if tag == echo.ECHO_ENUM1 else pair
    return call, ndr_pack_in


def epm_map(argument: list[Any]) -> Any:
    uuid, with_tower, maximum = argument
    call = epmapper.epm_Map()
    call.in_object = None if uuid is None else misc.GUID(uuid)
    call.in_map_tower = tower() if with_tower else None
    call.in_entry_handle = handle("a1b2c3d4-0001-0002-0304-05060708090a")
    call.in_max_towers = maximum
    return call, ndr_pack_in


def epm_lookup(maximum: int) -> Any:
    call = epmapper.epm_Lookup()
    call.in_inquiry_type = 1
    call.in_object = misc.GUID("a1b2c3d4-0001-0002-0304-05060708090a")
    interface = epmapper.rpc_if_id_t()
    interface.uuid = misc.GUID("77df7a80-f298-11d0-8358-00a024c480a8")
    interface.vers_major, interface.vers_minor = 1, 2
    call.in_interface_id = interface
    call.in_vers_option = 2
    call.in_entry_handle = handle("00000000-0000-0000-0000-000000000000")
    call.in_max_ents = maximum
    return call, ndr_pack_in


def inq_if_ids(uuids: list[str]) -> Any:
    vector = mgmt.rpc_if_id_vector_t()
    items = []
    for uuid in uuids:
        item = mgmt.ndr_syntax_id_p()
        item.id = misc.ndr_syntax_id()
        item.id.uuid = misc.GUID(uuid)
        item.id.if_version = 0x00020001
        items.append(item)
    vector.count = len(items)
    vector.if_id = items
    call = mgmt.inq_if_ids()
    call.out_if_id_vector = vector
    call.result = 0
    return call, ndr_pack_out


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "EchoData": echo_data,
    "TestCall": test_call,
    "TestCall out": test_call_out,
    "TestCall2 out": test_call2,
    "TestSurrounding": test_surrounding,
    "TestEnum": test_enum,
    "epm_Map": epm_map,
    "epm_Lookup": epm_lookup,
    "inq_if_ids out": inq_if_ids,
}


def packed(name: str, argument: Any) -> dict[str, str]:
    call, pack = BUILDERS[name](argument)
    return {
        "ndr20": pack(call).hex(),
        "big_endian": pack(call, bigendian=True).hex(),
        "ndr64": pack(call, ndr64=True).hex(),
    }


if __name__ == "__main__":
    json.dump([packed(name, argument) for name, argument in json.load(sys.stdin)], sys.stdout)
