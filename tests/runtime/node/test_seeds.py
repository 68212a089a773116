"""The key of a seed counts until the directory has it once."""

from __future__ import annotations

import pytest

from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.members import Members, Seed
from mqis.runtime.node.signer import MachineKey
from mqis.server.founding import found
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

OLD, NEW, OTHER = (MachineKey.generate().public for _ in range(3))


def directory(key: RsaPublicKey) -> tuple[MemoryStore, Guid]:
    store = MemoryStore()
    found(store, "Acme", "Delft", "pec1", key=key)
    with store.read() as view:
        machine = view.find(ObjectType.MACHINE, "pec1")
    assert machine is not None
    return store, machine.id


def publish(store: MemoryStore, *keys: RsaPublicKey) -> None:
    with store.write() as tx:
        machine = tx.find(ObjectType.MACHINE, "pec1")
        assert machine is not None
        events = DirectoryEvents(tx, 1, SystemEntropy())
        events.set_stored(machine, props({PropId.QM_SIGN_PKS: key_list(*keys)}))


def accepted(store: MemoryStore, machine: Guid, seed: RsaPublicKey) -> list[int]:
    """The keys that a server with this seed accepts after a start."""
    members = Members(store, {machine: Seed("pec1", machine, seed)})
    with store.write() as tx:
        members.mark_seeds(tx)
    return [key.modulus for key in members.keys_of(machine)]


@pytest.mark.req("SEC-26-03")
def test_a_key_that_the_directory_has_dropped_is_not_that_of_a_seed() -> None:
    store, machine = directory(OLD)
    assert accepted(store, machine, OLD) == [OLD.modulus]
    publish(store, OLD, NEW)
    assert accepted(store, machine, OLD) == [OLD.modulus, NEW.modulus]
    publish(store, NEW)
    assert accepted(store, machine, OLD) == [NEW.modulus]


@pytest.mark.req("SEC-26-03")
def test_a_key_that_was_withdrawn_while_a_server_ran_is_withdrawn_at_once() -> None:
    store, machine = directory(OLD)
    members = Members(store, {machine: Seed("pec1", machine, OLD)})
    assert members.seeds_to_mark
    with store.write() as tx:
        members.mark_seeds(tx)
    members.seeds_to_mark = False
    publish(store, NEW)
    members.changed(frozenset({ObjectType.MACHINE}))
    assert members.seeds_to_mark
    assert [key.modulus for key in members.keys_of(machine)] == [NEW.modulus]


def test_a_seed_that_comes_while_the_server_runs_counts_at_once() -> None:
    """A server that was rebuilt with a new key was refused until all others were restarted."""
    store, machine = directory(OLD)
    members = Members(store, {})
    assert [key.modulus for key in members.keys_of(machine)] == [OLD.modulus]
    members.use({machine: Seed("pec1", machine, NEW)})
    assert [key.modulus for key in members.keys_of(machine)] == [OLD.modulus, NEW.modulus]
    assert members.seeds_to_mark


def test_a_key_that_the_directory_never_had_counts() -> None:
    """A backup with an old key of its PSC in its directory could not get the new one."""
    store, machine = directory(OLD)
    assert accepted(store, machine, NEW) == [OLD.modulus, NEW.modulus]
    publish(store, NEW)
    assert accepted(store, machine, NEW) == [NEW.modulus]
    publish(store, OTHER)
    assert accepted(store, machine, NEW) == [OTHER.modulus]
    assert accepted(store, machine, OLD) == [OTHER.modulus, OLD.modulus], "nobody has marked it"
