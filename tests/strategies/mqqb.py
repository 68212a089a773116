"""Packets of MS-MQQB, for any test that needs some."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from mqis.wire.guid import Guid
from mqis.wire.mqqb.internal import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)
from mqis.wire.mqqb.packet import Packet, UserMessage
from mqis.wire.mqqb.ping import Ping
from mqis.wire.mqqb.properties import MessageProperties
from mqis.wire.mqqb.queuename import ADMIN_KINDS, DESTINATION_KINDS, QueueKind, QueueName
from mqis.wire.mqqb.securityheader import SecurityHeader
from mqis.wire.mqqb.userheader import UserHeader
from tests.strategies.propvariant import guids, texts

u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
_short = st.binary(max_size=21)


def session_headers() -> st.SearchStrategy[SessionHeader]:
    return st.builds(SessionHeader, u16, u16, u32, u16, u16, u16)


def internal_packets() -> st.SearchStrategy[Packet]:
    flag = st.booleans()
    return st.one_of(
        st.builds(EstablishConnection, guids, guids, u32, flag, flag, flag, flag),
        st.builds(ConnectionParameters, u32, u32, u16, flag),
        st.builds(SessionAck, session_headers()),
    )


def pings() -> st.SearchStrategy[Ping]:
    return st.builds(Ping, u32, guids, st.booleans(), st.booleans())


def _name(kind: QueueKind) -> st.SearchStrategy[QueueName]:
    numbered = (
        QueueKind.PRIVATE_AT_SOURCE,
        QueueKind.PRIVATE_AT_DESTINATION,
        QueueKind.PRIVATE_AT_ADMIN,
        QueueKind.PRIVATE,
    )
    identified = (QueueKind.PUBLIC, QueueKind.PRIVATE)
    return st.builds(
        QueueName,
        st.just(kind),
        texts if kind is QueueKind.DIRECT else st.just(""),
        u32 if kind in numbered else st.just(0),
        guids if kind in identified else st.just(Guid.NULL),
    )


def _names(allowed: tuple[bool, ...]) -> st.SearchStrategy[QueueName]:
    return st.sampled_from([kind for kind in QueueKind if allowed[kind]]).flatmap(_name)


def user_headers() -> st.SearchStrategy[UserHeader]:
    return st.builds(
        UserHeader,
        source=guids,
        message_id=u32,
        destination=_names(DESTINATION_KINDS),
        address=guids,
        time_to_be_received=u32,
        sent_time=u32,
        admin=_names(ADMIN_KINDS),
        response=_names((True,) * 8),
        recoverable=st.booleans(),
        hops=st.integers(0, 31),
        journal_negative=st.booleans(),
        journal_positive=st.booleans(),
        connector_type=st.none() | guids,
    )


def security_headers() -> st.SearchStrategy[SecurityHeader]:
    bits, flag = st.integers(0, 15), st.booleans()
    return st.builds(
        SecurityHeader, bits, _short, _short, _short, _short, _short, flag, flag, flag, bits
    )


def message_properties() -> st.SearchStrategy[MessageProperties]:
    return st.builds(
        MessageProperties,
        body=st.binary(max_size=60),
        message_class=u16,
        acknowledge=st.integers(0, 15),
        correlation_id=st.binary(min_size=20, max_size=20),
        label=texts.map(lambda text: text + "\0" if text else ""),
        extension=_short,
        body_type=u32,
        application_tag=u32,
        privacy_level=u32,
        hash_algorithm=u32,
        encryption_algorithm=u32,
    )


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def transaction_headers() -> st.SearchStrategy[bytes]:
    plain = st.binary(min_size=16, max_size=16).map(lambda rest: b"\x02\0\0\0" + rest)
    connector = st.binary(min_size=32, max_size=32).map(lambda rest: b"\x01\0\0\0" + rest)
    return plain | connector


def debug_headers() -> st.SearchStrategy[bytes]:
    return st.just(bytes(4)) | guids.map(lambda guid: b"\x01\0\0\0" + guid.raw)


def soap_headers() -> st.SearchStrategy[bytes]:
    def section(number: int, text: bytes) -> bytes:
        return _padded(struct.pack("<HHI", number, 0, len(text) // 2) + text)

    units = st.integers(0, 7).flatmap(lambda n: st.binary(min_size=2 * n, max_size=2 * n))
    return st.builds(lambda head, body: section(0x320, head) + section(0x384, body), units, units)


def multi_queue_headers() -> st.SearchStrategy[bytes]:
    def header(lists: list[bytes], signature: bytes) -> bytes:
        numbers = (0x64, 0xC8, 0x12C)
        parts = [
            _padded(struct.pack("<IHHI", 12 + len(names), number, 0, 1) + names)
            for number, names in zip(numbers, lists, strict=True)
        ]
        return b"".join(parts) + _padded(struct.pack("<HHI", 0x15E, 0, len(signature)) + signature)

    return st.builds(header, st.lists(_short, min_size=3, max_size=3), _short)


def user_messages() -> st.SearchStrategy[UserMessage]:
    return st.builds(
        UserMessage,
        header=user_headers(),
        properties=message_properties(),
        security=st.none() | security_headers(),
        priority=st.integers(0, 7),
        time_to_reach_queue=u32,
        session=st.none() | session_headers(),
        transaction=st.none() | transaction_headers(),
        debug=st.none() | debug_headers(),
        soap=st.none() | soap_headers(),
        multi_queue=st.none() | multi_queue_headers(),
        trace=st.booleans(),
    )


def packets() -> st.SearchStrategy[Packet]:
    return internal_packets() | user_messages()
