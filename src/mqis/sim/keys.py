"""Signatures of simulated servers, and the keys that each server knows of the others.

Public keys are where a real enterprise has them: in the machine's list of keys, or configured by an
administrator for the servers that a new one has to trust first. The signature itself is a keyed
hash instead of RSA, which would take most of a run's time. Verification looks the secret up by the
public key, in place of the mathematics; nothing else uses that table.
"""

from __future__ import annotations

from hashlib import blake2b

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.ports import View
from mqis.protocol.queueing.replication_queue import canonical
from mqis.protocol.queueing.signing import Verdict
from mqis.protocol.replication.server_identity import Server
from mqis.sim.simulated_stores import Disk
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: Types of the objects that identify servers and hold their keys.
_TOPOLOGY = frozenset({ObjectType.MACHINE, ObjectType.SITE})
_TOP_BIT = 1 << 127
_Member = tuple[str, tuple[RsaPublicKey, ...]]


class KeyVault:
    """The secrets of all key pairs, by public key."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._secrets: dict[int, bytes] = {}

    def public(self, name: str) -> RsaPublicKey:
        """The public key of a server or an impostor; makes the key pair if there is none."""
        secret = blake2b(f"{self._seed}/{name}".encode(), digest_size=16).digest()
        modulus = int.from_bytes(blake2b(secret, digest_size=16).digest(), "little") | _TOP_BIT
        self._secrets[modulus] = secret
        return RsaPublicKey.of(modulus, 65537)

    def sign(self, key: RsaPublicKey, parts: tuple[bytes, ...]) -> bytes:
        secret = self._secrets[key.modulus]
        return blake2b(b"".join(parts), key=secret, digest_size=16).digest()

    def is_signed(self, key: RsaPublicKey, parts: tuple[bytes, ...], signature: bytes) -> bool:
        """Returns whether the owner of a key made the signature; False for an unknown key."""
        return key.modulus in self._secrets and self.sign(key, parts) == signature


class Keyring:
    """``queueing.Signer`` and the list of admitted servers of one server, over its store."""

    def __init__(self, vault: KeyVault, me: Server, disk: Disk) -> None:
        self._vault = vault
        self._me = me
        self._disk = disk
        self._own = vault.public(me.name)
        self._known: dict[Guid, _Member] = {}

    def changed(self, object_types: frozenset[ObjectType]) -> None:
        """Clears the cache if objects of these types may have changed keys."""
        if object_types & _TOPOLOGY:
            self._known.clear()

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool:
        """Implements ``queueing.Peers``: admits directory servers with a key, under their name."""
        name, keys = self._member(guid)
        return bool(keys) and (machine is None or canonical(machine) == canonical(name))

    def sign(self, parts: tuple[bytes, ...]) -> bytes:
        return self._vault.sign(self._own, parts)

    def verify(self, sender: Guid, parts: tuple[bytes, ...], signature: bytes) -> Verdict:
        _, keys = self._member(sender)
        if not keys:
            return Verdict.UNKNOWN_SENDER
        right = any(self._vault.is_signed(key, parts, signature) for key in keys)
        return Verdict.VALID if right else Verdict.INVALID

    def _member(self, source: Guid) -> _Member:
        found = self._known.get(source)
        if found is None:
            with self._disk.store.read() as view:
                found = self._known[source] = self._look_up(view, source)
        return found

    def _look_up(self, view: View, source: Guid) -> _Member:
        """The name and keys of a directory server; other machines have no keys."""
        seed = self._me.seeds.get(source)
        machine = view.get(ObjectType.MACHINE, source)
        known = machine is not None and (seed is not None or _is_server(view, machine))
        keys = () if seed is None else (self._vault.public(seed),)
        if machine is None or not known:
            return seed or "", keys
        return machine.path or "", keys + _keys(machine)


def _is_server(view: View, machine: DirectoryObject) -> bool:
    if ServiceAttributes.of(machine).role is not None:
        return True
    name = name_key(machine.path or "")
    return any(name_key(state.owner) == name for state in view.partitions())


def _keys(machine: DirectoryObject) -> tuple[RsaPublicKey, ...]:
    """The keys of a machine; none if they cannot be decoded."""
    blob = machine.value(PropId.QM_SIGN_PKS)
    if not isinstance(blob, bytes) or not blob:
        return ()
    try:
        return tuple(entry.rsa() for entry in PublicKeys.from_bytes(blob).keys)
    except WireError:
        return ()
