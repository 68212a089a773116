"""Bytes that wait for their turn, and PDUs that are left for a later one."""

from __future__ import annotations

import pytest

from tests.protocol.rpc.talk import Talk, request_pdu


@pytest.mark.req("SEC-17-07")
def test_bytes_that_are_kept_are_charged_and_handled_later() -> None:
    talk = Talk().bound()
    whole = request_pdu(stub=b"hello")
    talk.server.keep(whole[:20], 1.0)
    assert talk.server.stalled
    assert talk.server.data_to_send() == b""
    talk.server.keep(whole[20:] + whole * 400, 2.0)
    assert talk.server.held == 401 * len(whole) - talk.endpoint.limits.max_frag
    assert len(talk.pdus()) == 401
    assert not talk.server.stalled
    assert talk.server.held == 0
