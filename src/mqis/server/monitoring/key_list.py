"""The signing keys as one server knows them: ``GET /keys?server=NAME``.

'mqis key rotate' asks every server which keys it accepts from the one whose key changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.security.keyinfo import key_id

if TYPE_CHECKING:  # commands read the answers, and load none of a server's parts
    from mqis.protocol.ports import Store
    from mqis.runtime.node.keyring import KeyRing
    from mqis.runtime.node.members import Members
    from mqis.server.monitoring.status_sources import Sources


@dataclass(frozen=True, slots=True)
class OwnKey:
    """The key of the server that answers. Identifiers are the first 16 digits of a SHA-256."""

    signs_with: str
    #: The time since which it signs, in seconds since the epoch.
    made: float
    #: The stage of a rotation (``runtime.node.keyring``).
    stage: str

    @classmethod
    def of(cls, ring: KeyRing) -> OwnKey:
        return cls(ring.signing.key_id.hex()[:16], ring.made, ring.stage.value)


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The answer of one server."""

    server: str
    #: Server -> the keys that are accepted from it; the one that signs comes first.
    keys: Mapping[str, tuple[str, ...]]
    #: None for a server without a key.
    own: OwnKey | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> KnownKeys:
        """Reads an answer; raises ValueError, KeyError, TypeError or AttributeError."""
        own = content.get("own")
        known = {str(name): tuple(map(str, keys)) for name, keys in content["keys"].items()}
        made = None
        if own is not None:
            made = OwnKey(str(own["signs_with"]), float(own["made"]), str(own["stage"]))
        return cls(str(content["server"]), known, made)


def known_keys(sources: Sources, query: str) -> KnownKeys:
    """Answers a query; a server that the directory does not have has no keys."""
    from mqis.runtime.node.members import Members  # noqa: PLC0415

    service = sources.replication
    members = Members(sources.store, {}) if service is None else service.driver.members
    names = parse_qs(query).get("server", [])
    own = None if service is None or service.key is None else OwnKey.of(service.key.ring)
    return KnownKeys(sources.name, accepted_keys(sources.store, members, names), own)


def accepted_keys(
    store: Store, members: Members, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The keys that are accepted from servers, by name."""
    with store.read() as view:
        machines = {name: view.find(ObjectType.MACHINE, name) for name in names}
    return {
        name: tuple(key_id(key).hex()[:16] for key in members.keys_of(machine.id))
        for name, machine in machines.items()
        if machine is not None
    }
