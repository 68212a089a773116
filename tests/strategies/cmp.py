"""Packets and boxcars of MS-CMP."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.wire.cmp.packet import MsgTag, Packet

u32 = st.integers(0, 0xFFFFFFFF)

packets = st.builds(
    Packet,
    st.sampled_from([int(tag) for tag in MsgTag]),
    u32,
    u32,
    u32,
    st.binary(max_size=40),
    u32,
)
