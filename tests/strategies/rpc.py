"""PDUs, towers and verification trailers with any content that fits their fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mqis.testing.rpc import header_command
from mqis.wire.guid import Guid
from mqis.wire.rpc import pdu_bodies
from mqis.wire.rpc.interfaces import SyntaxId
from mqis.wire.rpc.pdu import Body
from mqis.wire.rpc.tower import MAX_FLOORS, Floor, Tower
from mqis.wire.rpc.trailer import AuthTrailer
from mqis.wire.rpc.verification import Verification

U8 = st.integers(0, 0xFF)
U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)

guids = st.builds(Guid, st.binary(min_size=16, max_size=16))
syntaxes = st.builds(SyntaxId, guids, U16, U16)


def _tuples(items: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=most).map(tuple)


_elements = st.builds(pdu_bodies.ContextElement, U16, syntaxes, _tuples(syntaxes, 3))
_results = st.builds(pdu_bodies.ContextResult, U16, U16, syntaxes)
_proposals = (U16, U16, U32, _tuples(_elements, 4))
#: What a secondary address can hold: no zero byte at its end, since one ends it.
_addresses = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=20)
_acks = (U16, U16, U32, _addresses, _tuples(_results, 4))

some_bodies: st.SearchStrategy[Body] = st.one_of(
    st.builds(
        pdu_bodies.Request, U16, U16, st.binary(max_size=64), st.none() | guids, alloc_hint=U32
    ),
    st.builds(pdu_bodies.Response, U16, st.binary(max_size=64), U32, U8),
    st.builds(pdu_bodies.Fault, U16, U32, U32, U8, U8),
    st.builds(pdu_bodies.Bind, *_proposals),
    st.builds(pdu_bodies.AlterContext, *_proposals),
    st.builds(pdu_bodies.BindAck, *_acks),
    st.builds(pdu_bodies.AlterContextResp, *_acks),
    st.builds(pdu_bodies.BindNak, U16, _tuples(st.tuples(U8, U8), 5)),
    st.just(pdu_bodies.Auth3()),
    st.just(pdu_bodies.Shutdown()),
    st.just(pdu_bodies.CoCancel()),
    st.just(pdu_bodies.Orphaned()),
)

#: A token of no bytes is no trailer for a reader, so there is always one.
trailers = st.builds(AuthTrailer, U8, U8, U32, st.binary(min_size=1, max_size=40), st.just(0), U8)

floors = st.builds(Floor, st.binary(max_size=30), st.binary(max_size=30))
towers = st.builds(Tower, _tuples(floors, MAX_FLOORS))

verifications = st.builds(
    lambda signing, pair, header: Verification(signing, pair[0], pair[1], header),
    st.none() | st.booleans(),
    st.just((None, None)) | st.tuples(syntaxes, syntaxes),
    st.none() | st.builds(header_command, U32, U16, U16),
).filter(lambda said: said != Verification())
