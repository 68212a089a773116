"""The descriptors of new objects are remembered, each for its creator, and only short ones."""

from __future__ import annotations

import pytest

from mqis.protocol.directory import write_methods
from mqis.protocol.directory.guard import Guard
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.locate import Target
from mqis.protocol.errors import DirectoryError
from mqis.protocol.security.access import Token
from mqis.runtime.entropy import SystemEntropy
from mqis.storage.memory_store import MemoryStore
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import EVERYONE, Sid
from tests.builders import machine

ALICE, BOB = (Sid.parse(f"S-1-5-21-1-2-3-{number}") for number in (1001, 1002))


def create(store: MemoryStore, who: Sid, name: str, given: bytes | None) -> SecurityDescriptor:
    guard = Guard(Token.authenticated(who, []), frozenset({who}))
    with store.write() as transaction:
        events = DirectoryEvents(transaction, 0, SystemEntropy())
        target = Target(ObjectType.QUEUE, f"HOST\\{name}")
        made = write_methods.create_object(events, guard, target, {}, descriptor=given)
    data = made.value(PropId.Q_SECURITY)
    assert isinstance(data, bytes)
    return SecurityDescriptor.from_bytes(data)


def descriptor(entries: int, mask: int = 0x20) -> bytes:
    return SecurityDescriptor(dacl=Acl((allow(EVERYONE, mask),) * entries)).to_bytes()


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    with store.write() as transaction:
        transaction.insert(machine(1, "HOST"))
    return store


def test_the_same_bytes_give_each_creator_an_own_descriptor(store: MemoryStore) -> None:
    for number, (who, given) in enumerate([(ALICE, None), (BOB, None)] * 2):
        assert create(store, who, f"none{number}", given).owner == who
    for number, who in enumerate((ALICE, BOB, ALICE)):
        made = create(store, who, f"given{number}", descriptor(1, 0x4))
        assert made.owner == who
        assert made.dacl == Acl((allow(EVERYONE, 0x4),))


def test_long_ones_are_not_kept(store: MemoryStore) -> None:
    long = descriptor(400)
    assert len(long) > 4096
    before = write_methods._completed.cache_info()
    for name in ("a", "b"):
        made = create(store, ALICE, name, long)
        assert made.dacl is not None
        assert len(made.dacl.aces) == 400
    assert write_methods._completed.cache_info() == before


def test_a_damaged_one_is_refused_every_time(store: MemoryStore) -> None:
    for name in ("a", "b"):
        with pytest.raises(DirectoryError) as caught:
            create(store, ALICE, name, b"\1\0\0")
        assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR
