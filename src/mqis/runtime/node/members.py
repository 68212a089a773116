"""The other servers, from the directory: their names, their keys, and whether they may connect.

The event loop asks for every session and every signed message, so results are cached until the
objects that they depend on change.

The key of a seed counts until the directory has it once; the store remembers that. From then on the
directory alone says which keys the server has, so a key that was withdrawn there stays withdrawn,
although old configurations still name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import DirectoryObject, name_key
from mqis.protocol.ports import Store, Transaction, View
from mqis.protocol.queueing.replication_queue import canonical
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds.keys import PublicKeys, RsaPublicKey
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.security.keyinfo import key_id

#: The local states of the store that mark seeds.
_FAMILY = "seeds"
_TOPOLOGY = frozenset({ObjectType.MACHINE, ObjectType.SITE, ObjectType.ENTERPRISE})


@dataclass(frozen=True, slots=True)
class Seed:
    """A server that this one trusts before it is in the directory."""

    name: str
    id: Guid
    key: RsaPublicKey | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A queue manager, as the directory describes it."""

    name: str
    #: True for a server of the directory: PEC, PSC or BSC.
    is_server: bool
    keys: tuple[RsaPublicKey, ...]


class Members:
    """``queueing.Peers`` over a store, and the keys that verify signatures."""

    def __init__(
        self, store: Store, seeds: Mapping[Guid, Seed], *, keys_required: bool = False
    ) -> None:
        self._store = store
        self._seeds = seeds
        self._keys_required = keys_required
        self._known: dict[Guid, Member | None] = {}
        #: True if the directory may have got the key of a seed since the last ``mark_seeds``.
        self.seeds_to_mark = bool(seeds)

    def use(self, seeds: Mapping[Guid, Seed]) -> None:
        """Takes other seeds, such as the new key of a server that was rebuilt."""
        self._seeds = seeds
        self._known.clear()
        self.seeds_to_mark = bool(seeds)

    def changed(self, object_types: frozenset[ObjectType]) -> None:
        if object_types & _TOPOLOGY:
            self._known.clear()
            self.seeds_to_mark = bool(self._seeds)

    def mark_seeds(self, tx: Transaction) -> None:
        """Remembers the seeds whose key the directory has: from now on that alone counts."""
        for seed in self._seeds.values():
            member = None if seed.key is None else _from_directory(tx, seed.id)
            if member is not None and seed.key in member.keys:
                tx.put_state(_FAMILY, _mark(seed), b"")

    def member(self, id: Guid) -> Member | None:  # noqa: A002
        """A known queue manager, else None. Unknown ones, of unlimited number, are not cached."""
        found = self._known.get(id)
        if found is None:
            with self._store.read() as view:
                found = _from_seed(view, self._seeds.get(id), _from_directory(view, id))
            if found is not None:
                self._known[id] = found
        return found

    def name_of(self, id: Guid) -> str | None:  # noqa: A002
        found = self.member(id)
        return None if found is None else found.name

    def keys_of(self, id: Guid) -> tuple[RsaPublicKey, ...]:  # noqa: A002
        found = self.member(id)
        return () if found is None else found.keys

    def admits(self, guid: Guid, machine: str | None, address: str) -> bool:
        """Admits servers of the directory; one that this side connected to must have that name."""
        found = self.member(guid)
        if found is None:
            return False
        if machine is not None:
            return canonical(found.name) == canonical(machine)
        return found.is_server and (bool(found.keys) or not self._keys_required)


def _from_seed(view: View, seed: Seed | None, member: Member | None) -> Member | None:
    """The member in the directory, with the key that an administrator has configured.

    A backup controller with an old key of its PSC in its directory could not get the new one.
    """
    if seed is None:
        return member
    spent = seed.key is None or view.state(_FAMILY, _mark(seed)) is not None
    key = () if seed.key is None or spent else (seed.key,)
    if member is None:
        return Member(seed.name, True, key)
    return Member(member.name, True, tuple(dict.fromkeys((*member.keys, *key))))


def _mark(seed: Seed) -> bytes:
    return seed.id.raw + (b"" if seed.key is None else key_id(seed.key))


def _from_directory(view: View, id: Guid) -> Member | None:  # noqa: A002
    machine = view.get(ObjectType.MACHINE, id)
    if machine is None or machine.path is None:
        return None
    name = name_key(machine.path)
    sites = [s for s in view.objects(ObjectType.SITE) if name_key(_psc(s)) == name]
    role = ServiceAttributes.of(machine).role
    keys = [*_keys(machine, PropId.QM_SIGN_PKS)]
    for site in sites:
        keys += _keys(site, PropId.S_PSC_SIGNPK)
    return Member(machine.path, role is not None or bool(sites), tuple(dict.fromkeys(keys)))


def _psc(site: DirectoryObject) -> str:
    name = site.value(PropId.S_PSC)
    return name if isinstance(name, str) else ""


def _keys(obj: DirectoryObject, propid: PropId) -> Iterator[RsaPublicKey]:
    """The RSA keys in a property; entries of other providers are skipped."""
    blob = obj.value(propid)
    if not isinstance(blob, bytes) or not blob:
        return
    try:
        listed = PublicKeys.from_bytes(blob).keys
    except WireError:
        return
    for entry in listed:
        try:
            yield entry.rsa()
        except WireError:
            continue
