"""Rotates the signing key of a server while all servers run.

The server's key file says how far the rotation is (``runtime.node.keyring``); the server publishes
what it says. Here every other server is asked which keys it accepts, and the file goes to the next
stage when all of them have seen the one before. So a rotation that was interrupted anywhere goes on
with the next call, and no server gets a message that it cannot verify.

It takes the right to write the key file, and no account: whoever can write that file can act as the
server anyway.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from mqis.config.errors import ConfigError
from mqis.config.file import load, override, read, write_config
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.processlocks import ProcessLock
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.enterprise.lost_servers import loss_at
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import StorageError
from mqis.runtime.node.keyring import KeyRing, KeyStage
from mqis.runtime.node.members import Members, Seed
from mqis.server.identity import parse_seed, seed_text, seeds_of, server_name
from mqis.server.monitoring.fetching import fetch_keys
from mqis.server.monitoring.key_list import KnownKeys, OwnKey, accepted_keys
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

_MAX_THREADS = 16
_NO_KEYS = KnownKeys("", {})


@dataclass(frozen=True, slots=True)
class KeyWitness:
    """A server that is asked which keys it accepts."""

    #: Empty if only its monitoring address is known.
    name: str
    #: The URL under which it answers ``/keys``; empty: none.
    monitor: str = ""
    #: The URL of its store, if that is on this computer: it says what a stopped server knows.
    store: str = ""
    #: Its configuration, if that is on this computer.
    config: Path | None = None


@dataclass(frozen=True, slots=True)
class Testimony:
    """The answer of a witness."""

    witness: KeyWitness
    known: KnownKeys
    #: The reason why it did not answer; what is known then comes from its store.
    problem: str = ""

    @property
    def name(self) -> str:
        return self.witness.name or self.known.server or self.witness.monitor

    def keys_of(self, server: str) -> tuple[str, ...]:
        wanted = name_key(server)
        return next((k for name, k in self.known.keys.items() if name_key(name) == wanted), ())


@dataclass(frozen=True, slots=True)
class RotationProgress:
    """The state of a rotation after a look at all servers."""

    stage: KeyStage
    #: The servers that are waited for, with the reasons.
    waiting: Mapping[str, str]
    #: True if a step was made.
    stepped: bool = False
    done: bool = False


def witnesses_of_run(nodes: Nodes) -> list[KeyWitness]:
    return [KeyWitness(n.name, n.monitor_url, n.store, Path(n.config)) for n in nodes]


def witnesses_of_config(file: Path) -> list[KeyWitness]:
    """The server of a configuration, and its peers; the latter are known by address alone."""
    config = load(file)
    own, monitoring = server_name(config), config.monitoring
    peers = (KeyWitness("", url) for url in monitoring.peers)
    return [KeyWitness(own, monitoring.local_url, config.store.url, file), *peers]


def ask_all(witnesses: Sequence[KeyWitness], servers: Sequence[str]) -> list[Testimony]:
    """Asks all witnesses at once for the keys that they accept from ``servers``."""
    with ThreadPoolExecutor(min(_MAX_THREADS, len(witnesses))) as threads:
        return list(threads.map(lambda witness: _ask(witness, servers), witnesses))


def _ask(witness: KeyWitness, servers: Sequence[str]) -> Testimony:
    problem = "it has no monitoring address"
    if witness.monitor:
        found = fetch_keys(witness.monitor, servers)
        if isinstance(found, KnownKeys):
            return Testimony(witness, found)
        problem = found
    if not witness.store:
        return Testimony(witness, _NO_KEYS, problem)
    try:
        with closing(open_store(witness.store)) as store:
            keys = accepted_keys(store, Members(store, {}), servers)
    except (StorageError, ConfigError) as error:
        return Testimony(witness, _NO_KEYS, f"{problem}; {error}")
    return Testimony(witness, KnownKeys(witness.name, keys), problem)


@dataclass(frozen=True, slots=True)
class HeldKey:
    """The key of one server, for a list."""

    server: str
    #: None if it is not known; ``problem`` then says why.
    own: OwnKey | None
    #: The servers that do not accept exactly the key that signs.
    differing: tuple[str, ...] = ()
    problem: str = ""


def held_keys(witnesses: Sequence[KeyWitness]) -> list[HeldKey]:
    """The keys of all servers, and who accepts others."""
    first = ask_all(witnesses, [])
    names = [each.name for each in first]
    found = ask_all(witnesses, names)
    return [_held(each, found) for each in found]


def _held(testimony: Testimony, all_: Sequence[Testimony]) -> HeldKey:
    own, problem = testimony.known.own, testimony.problem
    if own is None and testimony.witness.config is not None:
        try:
            path = Path(load(testimony.witness.config).replication.key)
            own = OwnKey.of(KeyRing.open(path, create=False))
        except MqisError as error:
            lost = loss_at(testimony.witness.config)
            problem = str(error) if lost is None else "; ".join(lost)
    if own is None:
        return HeldKey(testimony.name, None, (), problem)
    name, wanted = testimony.name, (own.signs_with,)
    told = [other for other in all_ if not other.problem or other.known.keys]
    return HeldKey(
        name, own, tuple(o.name for o in told if o.keys_of(name) != wanted), testimony.problem
    )


class KeyRotation:
    """The rotation of the key of one server; ``step`` is called until it is done."""

    def __init__(
        self,
        config: Path,
        witnesses: Sequence[KeyWitness],
        *,
        without: Iterable[str] = (),
        required: Iterable[str] = (),
    ) -> None:
        """``without``: servers that are not waited for; ``required``: that must have answered."""
        loaded = load(config)
        self.server = server_name(loaded)
        self._config = config
        self.path = Path(loaded.replication.key)
        self._witnesses = witnesses
        self._without = {name_key(name) for name in without}
        self._required = tuple(required)
        self._lock = ProcessLock(self.path.with_name(f"{self.path.name}.lock"))

    def __enter__(self) -> KeyRotation:
        if not self._lock.take():
            raise MqisError(f"{self.server}: another 'mqis key rotate' is at work on its key")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._lock.remove()

    @property
    def ring(self) -> KeyRing:
        return KeyRing.open(self.path, create=False)

    def begin(self) -> bool:
        """Makes a new key, unless a rotation is under way; returns whether one was."""
        ring = self.ring
        if ring.stage is KeyStage.STEADY:
            ring.announced().save(self.path)
            return False
        return True

    def step(self) -> RotationProgress:
        """Asks all servers, and goes to the next stage if they have seen this one."""
        ring = self.ring
        found = ask_all(self._witnesses, [self.server])
        waiting = dict(self._waiting(ring, found))
        if waiting:
            return RotationProgress(ring.stage, waiting)
        if ring.stage is KeyStage.NEXT:
            self._tell_absent(ring, found)
        after = _STEPS[ring.stage](ring)
        after.save(self.path)
        return RotationProgress(after.stage, {}, True, after.stage is KeyStage.STEADY)

    def _waiting(self, ring: KeyRing, found: Sequence[Testimony]) -> Iterable[tuple[str, str]]:
        for each in found:
            unnamed = each.problem and not each.witness.name  # it is among those required
            if unnamed or name_key(each.name) in self._without:
                continue
            reason = _lacking(ring, each.keys_of(self.server))
            if reason:
                yield each.name, f"{reason} ({each.problem})" if each.problem else reason
        told = {name_key(each.name) for each in found} | self._without
        for name in self._required:
            if name_key(name) not in told:
                yield name, "does not answer, or monitoring.peers lacks its address"

    def _tell_absent(self, ring: KeyRing, found: Sequence[Testimony]) -> None:
        """Puts the new key into the seeds of servers that are left out and do not know it.

        A server whose files are not here has to join again.
        """
        assert ring.following is not None
        config = load(self._config)
        if config.replication.id is None:
            with closing(open_store(config.store.url)) as store, store.read() as view:
                machine = view.find(ObjectType.MACHINE, self.server)
            id_ = None if machine is None else machine.id
        else:
            id_ = config.replication.id
        for each in found:
            file = each.witness.config
            if id_ is not None and file is not None and _lacking(ring, each.keys_of(self.server)):
                trust(file, Seed(self.server, id_, ring.following.public))


def _lacking(ring: KeyRing, listed: tuple[str, ...]) -> str:
    """The reason why a server with these keys has not seen the stage; empty if it has."""
    signing = ring.signing.key_id.hex()[:16]
    if ring.following is not None:
        known = ring.following.key_id.hex()[:16] in listed
        return "" if known else "does not know the new key yet"
    if ring.stage is KeyStage.FORMER:
        return "" if listed[:1] == (signing,) else "has not seen that the new key signs"
    others = ", ".join(key for key in listed if key != signing)
    if others:
        return f"still accepts another key, {others}"
    return "" if listed else "does not know the key"


_STEPS = {
    KeyStage.NEXT: lambda ring: ring.switched(time.time()),
    KeyStage.FORMER: KeyRing.withdrawn,
    KeyStage.WITHDRAWN: KeyRing.settled,
}


def trust(file: Path, seed: Seed) -> None:
    """Puts a server with its key into the seeds of a configuration, in place of an older entry."""
    config = read(file)
    kept = [text for text in config.replication.seeds if parse_seed(text).id != seed.id]
    values: dict[str, dict[str, object]] = {"replication": {"seeds": [*kept, seed_text(seed)]}}
    write_config(file, override(config, values, "mqis key"))


def servers_in(config: Config) -> list[str]:
    """The directory servers of the enterprise, from this server's copy of the directory."""
    with closing(open_store(config.store.url)) as store, store.read() as view:
        machines = view.objects(ObjectType.MACHINE)
        found = [m.path for m in machines if ServiceAttributes.of(m).role is not None]
    return [name for name in found if name]


def make_known(place: NodePlace, nodes: Nodes) -> list[str]:
    """Lets the others of a run directory trust the key of a server that has another than before.

    Makes a key if there is none. They would drop all its messages, also those with which it makes
    its key known. Returns the names of the servers that did not know it, whose configurations have
    it as a seed now.
    """
    own = KeyRing.open(Path(load(Path(place.config)).replication.key))
    public = own.signing.public
    taught = []
    for other in nodes:
        if other.name == place.name or not Path(other.config).exists():
            continue
        with suppress(MqisError):  # its store is lost
            config = load(Path(other.config))
            with closing(open_store(config.store.url)) as store:
                with store.read() as view:
                    machine = view.find(ObjectType.MACHINE, place.name)
                seeds = {seed.id: seed for seed in seeds_of(config)}
                keys = () if machine is None else Members(store, seeds).keys_of(machine.id)
            if machine is not None and public not in keys:
                trust(Path(other.config), Seed(place.name, machine.id, public))
                taught.append(other.name)
    return taught


def learn_keys(place: NodePlace, nodes: Nodes) -> list[str]:
    """Lets a restored server of a run directory trust the keys that the others have by now.

    Its copy of the directory may be older than a rotation: then it would refuse all messages with
    which it could learn of it. Returns the names of the servers whose keys were added.
    """
    learned = []
    with closing(open_store(place.store)) as store:
        members = Members(store, {})
        for other in nodes:
            if other.name == place.name:
                continue
            with store.read() as view:
                machine = view.find(ObjectType.MACHINE, other.name)
            try:
                public = KeyRing.open(
                    Path(load(Path(other.config)).replication.key), create=False
                ).signing.public
            except MqisError:
                continue  # it is not set up, or its files are lost
            if machine is not None and public not in members.keys_of(machine.id):
                trust(Path(place.config), Seed(other.name, machine.id, public))
                learned.append(other.name)
    return learned
