"""Names of changes: what is written can be read, and nothing else is one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.replication.outgoing_changes import (
    change_id,
    parse_change_id,
    parse_request_id,
    request_id,
)
from mqis.wire.guid import Guid
from mqis.wire.seqnum import SequenceNumber


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1))
def test_changes(guid: bytes, number: int) -> None:
    names = Guid(guid), SequenceNumber(number)
    assert parse_change_id(change_id(*names)) == names
    assert parse_request_id(change_id(*names)) is None


@given(st.text(min_size=1, max_size=15), st.integers(0, 2**32 - 1))
def test_requests(name: str, number: int) -> None:
    assert parse_request_id(request_id(name, number)) == (name.lower(), number)
    assert parse_change_id(request_id(name, number)) is None


@pytest.mark.parametrize(
    "text", ["", ":", "a", "a:b", "a:1234567", "a:1234567g", ":12345678", "1:0000000000000001"]
)
def test_what_is_none(text: str) -> None:
    assert parse_change_id(text) is None
    assert parse_request_id(text) is None


def test_a_server_is_the_same_in_any_spelling() -> None:
    assert request_id("BER-Dir2", 42) == "ber-dir2:0000002a" == request_id("ber-dir2", 42)
