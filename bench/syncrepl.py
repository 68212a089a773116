"""A local slapd provider and its consumers (syncrepl, refreshAndPersist, RFC 4533).

Each has a database that flushes every write; consumers authenticate with a name and a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from bench import ldap, slapd, twins
from bench.ldap import LdapPeer
from bench.load import Line, LoadError, Operation, Target
from bench.slapd import Slapd
from bench.twins import SUFFIX, Queue

_NAME, _PASSWORD = f"cn=replicator,{SUFFIX}", "secret"
_LOGON = (f"rootdn {_NAME}", f"rootpw {_PASSWORD}")
_INDEXED = (*twins.INDEXED, "entryUUID", "entryCSN")
#: contextCSN: the number of the last change that a server has.
_NUMBER = re.compile(rb"\d{14}\.\d{6}Z#[0-9a-f]{6}#[0-9a-f]{3}#[0-9a-f]{6}")
_ANY = ldap.present("objectClass")


class Syncrepl:
    """The ``replication.Side`` of slapd: a provider, and consumers that start empty."""

    name = "slapd"

    def __init__(
        self, directory: Path, consumers: int, machines: int, queues: int, resources: ExitStack
    ) -> None:
        directory.mkdir()
        self._directory = directory
        self._consumers = consumers
        self._filled = machines, queues
        self._resources = resources
        self._next = queues
        self._creates = twins.creates(
            queues, "utf-8", lambda queue: ldap.add(queue.dn, queue.attributes())
        )
        self._servers: list[Slapd] = []
        self._lines: list[Line[LdapPeer]] = []
        #: The provider, then the consumers.
        self.targets: list[Target[LdapPeer]] = []

    @property
    def version(self) -> str:
        return self._servers[0].version

    def start_authority(self) -> None:
        """Starts the provider; raises ``Unavailable`` if slapd is not installed."""
        self._start(
            "provider",
            twins.ldif(*self._filled),
            ("back_mdb", "syncprov"),
            (*_LOGON, "overlay syncprov"),
        )

    def start_replicas(self) -> None:
        for number in range(1, self._consumers + 1):
            syncrepl = (
                f"syncrepl rid={number:03} provider=ldap://127.0.0.1:{self.targets[0].port} "
                f'type=refreshAndPersist searchbase="{SUFFIX}" scope=sub schemachecking=off '
                f'retry="1 +" bindmethod=simple binddn="{_NAME}" credentials={_PASSWORD}'
            )
            self._start(f"consumer{number}", None, ("back_mdb",), (*_LOGON, syncrepl))

    def await_ready(self) -> None:
        """Does nothing: consumers answer as soon as they run."""

    def _start(
        self,
        name: str,
        content: Iterable[str] | None,
        modules: tuple[str, ...],
        more: Iterable[str],
    ) -> None:
        home = self._directory / name
        home.mkdir()
        server = slapd.start(
            home,
            self._resources,
            suffix=SUFFIX,
            schema=twins.schema(),
            indexed=_INDEXED,
            content=content,
            modules=modules,
            more=more,
        )
        self._servers.append(server)
        self.targets.append(Target(server.pid, server.port, LdapPeer))
        line = Line(self.targets[-1])
        self._resources.callback(line.close)
        self._lines.append(line)

    def pids(self) -> list[int]:
        return [server.pid for server in self._servers]

    # --- changes ----------------------------------------------------------------------------------

    def creates(self, count: int) -> Iterator[bytes]:
        self._next += count
        return islice(self._creates, count)

    def create(self, peer: LdapPeer, request: bytes) -> Operation:
        return peer.ask(request, entries=0)

    def read_last(self, peer: LdapPeer) -> Operation:
        queue = Queue(self._next - 1)
        request = ldap.search(queue.dn, ldap.BASE, _ANY, ("queueLabel",))
        return peer.ask(request, queue.label.encode())

    # --- replicas ---------------------------------------------------------------------------------

    def equal(self) -> bool:
        """Compares contextCSN, which a consumer sets when it has everything up to it."""
        true, *copies = (self._last(line) for line in self._lines)
        return all(copy == true for copy in copies)

    def _last(self, line: Line[LdapPeer]) -> list[bytes]:
        reply = line.exchange(ldap.search(SUFFIX, ldap.BASE, _ANY, ("contextCSN",)))
        return _NUMBER.findall(reply.data)

    def compare(self) -> int:
        names = ("provider", *(f"consumer{n}" for n in range(1, self._consumers + 1)))
        true, *copies = (slapd.contents(self._directory / name) for name in names)
        for name, copy in zip(names[1:], copies, strict=True):
            for entry in sorted(true.keys() | copy.keys()):
                if true.get(entry) != copy.get(entry):
                    raise LoadError(f"{name}: {entry} differs from the provider's")
        return len(true)
