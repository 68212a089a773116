"""The realms in the bytes of a keytab."""

from __future__ import annotations

import struct

import pytest

from mqis.wire.errors import WireError
from mqis.wire.security.keytab import decode_realms

VERSION = b"\x05\x02"


def entry(realm: bytes, rest: bytes = b"\x00\x04host") -> bytes:
    body = struct.pack(">HH", 1, len(realm)) + realm + rest
    return struct.pack(">i", len(body)) + body


def test_every_key_tells_its_realm_and_holes_none() -> None:
    hole = struct.pack(">i", -3) + b"old"
    assert decode_realms(VERSION + entry(b"LAB") + hole + entry(b"B.TEST")) == ["LAB", "B.TEST"]
    assert decode_realms(VERSION) == []
    assert decode_realms(VERSION + b"\0\0") == []  # less than the length of an entry


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x05\x01" + entry(b"LAB"), "version 5.2"),
        (b"\x05", "the version"),
        (VERSION + struct.pack(">i", 9), "an entry"),
        (VERSION + struct.pack(">i", -9), "a hole"),
        (VERSION + struct.pack(">i", 0), "the head of an entry"),
        (VERSION + struct.pack(">i", 2) + b"\0\1", "the head of an entry"),
        (VERSION + struct.pack(">iHH", 4, 1, 9), "a realm"),
    ],
)
def test_damage_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        decode_realms(data)


def test_a_realm_is_utf_8() -> None:
    with pytest.raises(UnicodeDecodeError):
        decode_realms(VERSION + entry(b"\xff"))
