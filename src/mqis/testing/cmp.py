"""Packets of MS-CMP, each in memory of its own: mqis writes them into boxcars."""

from __future__ import annotations

from mqis.wire.cmp.packet import MsgTag, Packet


def user_message(
    connection_id: int, message_type: int, body: bytes | memoryview, *, is_master: bool
) -> Packet:
    return Packet(MsgTag.USER_MESSAGE, int(is_master), connection_id, message_type, body)


def packet_bytes(packet: Packet) -> bytes:
    """The packet without filler, which the boxcar adds."""
    return packet.header() + packet.data
