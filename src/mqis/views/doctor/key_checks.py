"""Checks the signing keys that the directory has of this server and of the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mqis.findings import Area, Finding
from mqis.protocol.ports import Store
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.replication.server_identity import Server
from mqis.runtime.node.members import Members
from mqis.runtime.node.signer import MachineKey
from mqis.server.identity import seeds_of
from mqis.texts import counted
from mqis.views.doctor.patient import KnownNeighbour, Patient
from mqis.wire.errors import MqisError

_KEYS = Area("keys")


def check(
    patient: Patient, store: Store, me: Server, others: list[KnownNeighbour]
) -> Iterator[Finding]:
    policy = patient.config.replication.signing
    if policy is SigningPolicy.NONE:
        yield _KEYS.note("messages are not signed (replication.signing)")
        return
    seeds = {seed.id: seed for seed in seeds_of(patient.config)}
    members = Members(store, seeds)
    yield from _own(patient, members, me)
    without = [other.name for other in others if not members.keys_of(other.id)]
    names = ", ".join(without)
    if without and policy is SigningPolicy.REQUIRE:
        todo = "start them once with their key; 'mqis join' publishes a new one"
        yield _KEYS.error(
            f"the directory has no key of {names}, so their messages are refused", todo
        )
    elif without:
        yield _KEYS.note(f"the directory has no key of {names}", "they can only send unsigned")
    elif others:
        yield _KEYS.ok(f"the directory has the keys of {counted(len(others), 'other server')}")


def _own(patient: Patient, members: Members, me: Server) -> Iterator[Finding]:
    path = Path(patient.config.replication.key)
    try:
        own = MachineKey.open(path, create=False).public
    except MqisError:
        return  # reported under configuration
    known = {(key.modulus, key.exponent) for key in members.keys_of(me.id)}
    if (own.modulus, own.exponent) in known:
        yield _KEYS.ok("the directory has this server's key")
    elif not known:
        yield _KEYS.note(
            "the directory has no key of this server", "the server publishes it when it starts"
        )
    else:
        todo = (
            "a server publishes its key when it starts; if the others refuse it, see 'A server "
            "with a new key' in docs/operations.md"
        )
        yield _KEYS.error("the directory has another key of this server", todo)
