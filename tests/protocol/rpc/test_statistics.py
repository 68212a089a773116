"""Faults by their status: there is no end of numbers that a client could choose."""

from __future__ import annotations

from mqis.protocol.rpc.faults import FaultStatus
from mqis.protocol.rpc.server_endpoint import RpcStatistics


def test_known_statuses_are_counted_apart_and_all_others_together() -> None:
    counted = RpcStatistics()
    for status in (FaultStatus.UNSPEC, FaultStatus.UNSPEC, FaultStatus.CANCEL, 7, 8, 0xC00E0006):
        counted.fault(status)
    assert counted.faults == 6
    assert counted.fault_statuses == {FaultStatus.UNSPEC: 2, FaultStatus.CANCEL: 1, 0: 3}
