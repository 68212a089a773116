"""The indexes of a store, and the owners of objects."""

from __future__ import annotations

import pytest
from hypothesis import given

from mqis.protocol.directory.indexing import (
    INDEXED,
    MAX_KEY_BYTES,
    index_keys,
    key_of,
    owner_of,
    path_key,
)
from mqis.protocol.directory.objects import DirectoryObject
from mqis.wire.guid import Guid
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.propvariant import PropVariant
from mqis.wire.seqnum import SequenceNumber
from tests.protocol.directory.world import (
    ALICE,
    ALICE_SID,
    BARE_CERTIFICATE,
    C14,
    CN,
    ENTERPRISE,
    LINK,
    LINK_AB,
    LINK_AF,
    LINK_FB,
    MACHINE,
    NET,
    ORDERS,
    OTHER,
    QUEUE,
    SITE,
    SITE_A,
    SITE_B,
    SITE_F,
    USER,
    World,
    digest,
    guid,
    guids,
    text,
    ui4,
)
from tests.strategies.propvariant import texts


def make(object_type: ObjectType, stored: dict[int, PropVariant]) -> DirectoryObject:
    return DirectoryObject(object_type, OTHER, SITE_A, SequenceNumber(1), stored)


class TestOwner:
    @pytest.mark.req("MQDS-3.1.4.21.1-01")
    @pytest.mark.parametrize(
        ("object_type", "owner"),
        [
            (QUEUE, C14),
            (MACHINE, SITE_A),
            (SITE, Guid.NULL),
            (LINK, Guid.NULL),
            (USER, Guid.NULL),
            (CN, Guid.NULL),
            (ENTERPRISE, Guid.NULL),
        ],
    )
    def test_tree(self, object_type: ObjectType, owner: Guid) -> None:
        world = World()
        obj = world.one(object_type)
        assert owner_of(obj) == owner
        with world.store.read() as view:
            assert obj in list(view.owned_by(object_type, owner))
            assert obj not in list(view.owned_by(object_type, OTHER))

    def test_the_first_site_owns_a_machine(self) -> None:
        assert owner_of(make(MACHINE, {222: guids(SITE_B, SITE_A)})) == SITE_B

    def test_without_a_host_or_a_site(self) -> None:
        assert owner_of(make(QUEUE, {})) == Guid.NULL
        assert owner_of(make(MACHINE, {})) == Guid.NULL

    def test_follows_an_update(self) -> None:
        world = World()
        obj = world.update(world.one(MACHINE), {201: guid(SITE_B)})
        with world.store.read() as view:
            assert obj in list(view.owned_by(MACHINE, SITE_B))
            assert list(view.owned_by(MACHINE, SITE_A)) == []


class TestKeys:
    def test_of_a_value(self) -> None:
        assert key_of("Stra\u00dfe A") == "stra\u00dfe a".encode()
        assert key_of(SITE_A) == SITE_A.raw
        assert key_of(ALICE_SID) == ALICE_SID
        for nothing in (None, "", b"", Guid.NULL, (), 0, 7):
            assert key_of(nothing) is None

    @given(texts)
    def test_any_text_has_a_key(self, name: str) -> None:
        """Lone surrogates included, which are names but not valid text."""
        assert path_key(name) == path_key(name.lower())
        assert key_of(name) == (path_key(name) or None)

    def test_a_long_value_has_a_short_key(self) -> None:
        longest = "x" * MAX_KEY_BYTES
        assert path_key(longest) == longest.encode()
        keys = {path_key(longest + end) for end in "ab"} | {key_of(b"x" * 5000 + b"a")}
        assert len(keys) == 3
        assert all(key is not None and len(key) == 32 for key in keys)
        assert path_key(longest + "A") == path_key(longest + "a")

    @pytest.mark.parametrize(
        ("object_type", "stored", "keys"),
        [
            (QUEUE, {108: text("Big"), 102: guid(OTHER)}, {(108, b"big"), (102, OTHER.raw)}),
            (QUEUE, {108: text(""), 102: guid(Guid.NULL), 105: ui4(5)}, set()),
            (
                MACHINE,
                {222: guids(SITE_A, SITE_B, SITE_A), 207: guids(NET)},
                {(222, SITE_A.raw), (222, SITE_B.raw), (207, NET.raw)},
            ),
            (LINK, {801: guid(SITE_A), 802: guid(SITE_A)}, {(801, SITE_A.raw), (802, SITE_A.raw)}),
            (SITE, {301: text("Alpha")}, set()),
        ],
    )
    def test_of_an_object(
        self,
        object_type: ObjectType,
        stored: dict[int, PropVariant],
        keys: set[tuple[int, bytes]],
    ) -> None:
        found = list(index_keys(make(object_type, stored)))
        assert len(found) == len(set(found))
        assert set(found) == keys

    def test_a_store_answers_by_them(self) -> None:
        world = World()
        with world.store.read() as view:
            certificate = digest(BARE_CERTIFICATE).raw
            assert [o.id for o in view.having(USER, INDEXED[USER][1], certificate)] == [ALICE]
            assert [o.id for o in view.having(USER, INDEXED[USER][0], ALICE_SID)] == [ALICE]
            begin = [o.id for o in view.having(LINK, INDEXED[LINK][0], SITE_A.raw)]
            assert begin == [LINK_AB, LINK_AF]
            assert [o.id for o in view.having(LINK, INDEXED[LINK][0], SITE_F.raw)] == [LINK_FB]
            assert list(view.having(LINK, INDEXED[LINK][1], SITE_A.raw)) == []
            found = view.find(QUEUE, "c14\\ORDERS")
        assert found is not None
        assert found.id == ORDERS
