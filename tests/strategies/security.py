"""Security identifiers, lists, descriptors and tokens for Hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.protocol.security.access import Token
from mqis.wire.guid import Guid
from mqis.wire.security import sid as well_known
from mqis.wire.security.acl import (
    OBJECT_TYPES,
    PLAIN_TYPES,
    Ace,
    AceFlags,
    Acl,
    ObjectAce,
    OpaqueAce,
    PlainAce,
)
from mqis.wire.security.descriptor import Control, SecurityDescriptor
from mqis.wire.security.sid import Sid

ALICE = Sid.parse("S-1-5-21-1-2-3-1001")
BOB = Sid.parse("S-1-5-21-1-2-3-1002")
STAFF = Sid.parse("S-1-5-21-1-2-3-2001")

#: Few enough that ACEs and tokens often meet.
PRINCIPALS = (
    ALICE,
    BOB,
    STAFF,
    well_known.EVERYONE,
    well_known.AUTHENTICATED_USERS,
    well_known.ADMINISTRATORS,
    well_known.OWNER_RIGHTS,
)

masks = st.integers(0, 0xFFFF_FFFF)
ace_flags = st.integers(0, 0xFF).map(AceFlags)
guids = st.binary(min_size=16, max_size=16).map(Guid)
sids = st.one_of(
    st.sampled_from(PRINCIPALS),
    st.builds(
        Sid,
        st.one_of(st.integers(0, 20), st.integers(0, (1 << 48) - 1)),
        st.lists(st.integers(0, 0xFFFF_FFFF), max_size=15).map(tuple),
    ),
)

plain_aces = st.builds(PlainAce, st.sampled_from(sorted(PLAIN_TYPES)), masks, sids, ace_flags)
object_aces = st.builds(
    ObjectAce,
    st.sampled_from(sorted(OBJECT_TYPES)),
    masks,
    sids,
    st.none() | guids,
    st.none() | guids,
    ace_flags,
)
opaque_aces = st.builds(
    OpaqueAce,
    st.integers(0, 0xFF).filter(lambda number: number not in PLAIN_TYPES | OBJECT_TYPES),
    st.lists(st.binary(min_size=4, max_size=4), max_size=12).map(b"".join),
    ace_flags,
)
typed_aces: st.SearchStrategy[Ace] = plain_aces | object_aces


def acls(aces: st.SearchStrategy[Ace] = typed_aces | opaque_aces) -> st.SearchStrategy[Acl]:
    return st.builds(Acl, st.lists(aces, max_size=6).map(tuple))


@st.composite
def descriptors(
    draw: st.DrawFn, aces: st.SearchStrategy[Ace] = typed_aces | opaque_aces
) -> SecurityDescriptor:
    control = Control(draw(st.integers(0, 0xFFFF)))
    rm_control = draw(st.integers(0, 0xFF)) if control & Control.RM_CONTROL_VALID else 0
    return SecurityDescriptor(
        draw(st.none() | sids),
        draw(st.none() | sids),
        draw(st.none() | acls(aces)),
        draw(st.none() | acls(aces)),
        control,
        rm_control,
    )


tokens = st.builds(
    Token,
    st.none() | st.sampled_from((ALICE, BOB)),
    st.frozensets(st.sampled_from(PRINCIPALS[2:-1])),
    st.booleans(),
    st.booleans(),
)
