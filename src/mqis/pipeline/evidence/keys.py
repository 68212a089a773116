"""The public keys of servers, as the directories of other servers have them."""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqis.wire.errors import WireError
from mqis.wire.mqds.keys import PublicKeys, RsaPublicKey


@dataclass(frozen=True, slots=True)
class ExportedKeys:
    """A list of keys that exports have of a server, as base64; all names are in lower case.

    ``first`` and ``last`` are the first and last server whose exports have this list.
    """

    server: str
    text: str
    first: str
    last: str

    @property
    def is_own(self) -> bool:
        """True if only the server's own export has it."""
        return self.first == self.last == self.server


def keys_by_server(exported: Iterable[ExportedKeys]) -> Mapping[str, tuple[RsaPublicKey, ...]]:
    """The keys by the server's name in lower case.

    Somebody who can write a server's journal can change its directory too. So the server's own
    export counts only if no other one has keys of it.
    """
    listed: dict[str, list[ExportedKeys]] = defaultdict(list)
    for keys in exported:
        listed[keys.server].append(keys)
    found: dict[str, tuple[RsaPublicKey, ...]] = {}
    for server, of_server in listed.items():
        others = [keys for keys in of_server if not keys.is_own]
        decoded = (key for keys in (others or of_server) for key in _decoded(keys.text))
        found[server] = tuple(dict.fromkeys(decoded))
    return found


def _decoded(text: str) -> list[RsaPublicKey]:
    """The RSA keys in a property's base64 text; those of other kinds are skipped."""
    found: list[RsaPublicKey] = []
    try:
        entries = PublicKeys.from_bytes(b64decode(text)).keys
    except (WireError, ValueError):
        return []
    for entry in entries:
        try:
            found.append(entry.rsa())
        except WireError:
            continue
    return found
