"""The directory servers that a client knows, over restarts (MS-MQDS 3.2.1.3, 3.2.1.4, 3.2.1.7)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from mqis.client.servers import ServerAddress
from mqis.protocol.errors import StorageError
from mqis.wire.guid import Guid

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client remembers. ``current`` is always one of ``servers``."""

    servers: tuple[ServerAddress, ...]
    current: ServerAddress
    #: SiteIdentifier: the site that this client belongs to.
    site: Guid | None = None
    #: The enterprise that owns the servers.
    enterprise: Guid | None = None

    def __post_init__(self) -> None:
        if self.current not in self.servers:
            raise ValueError(f"the current server {self.current} is not one of those known")


class StateStore(Protocol):
    """Where the state survives a restart."""

    def load(self) -> ClientState | None:
        """What was saved last; None if nothing was."""

    def save(self, state: ClientState) -> None: ...


class JsonFile:
    """``StateStore`` in a small file, which is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> ClientState | None:
        try:
            text = self.path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{self.path}: {error}") from error
        try:
            return _state(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(f"{self.path} does not list directory servers: {error}") from error

    def save(self, state: ClientState) -> None:
        text = json.dumps(_as_json(state), indent=2) + "\n"
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            fresh.write_text(text, "utf-8")
            fresh.replace(self.path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise StorageError(f"{self.path}: {error}") from error


def _as_json(state: ClientState) -> dict[str, Any]:
    return {
        "current": state.servers.index(state.current),
        "servers": [
            {
                "host": server.host,
                "port": server.port,
                "mapper_port": server.mapper_port,
                "addresses": list(server.addresses),
            }
            for server in state.servers
        ],
        "site": None if state.site is None else str(state.site),
        "enterprise": None if state.enterprise is None else str(state.enterprise),
    }


def _state(data: Any) -> ClientState:
    servers = tuple(_server(entry) for entry in data["servers"])
    current = data["current"]
    if type(current) is not int or not 0 <= current < len(servers):
        raise ValueError(f"there is no server {current}")
    return ClientState(
        servers, servers[current], _guid(data.get("site")), _guid(data.get("enterprise"))
    )


def _server(entry: Any) -> ServerAddress:
    port, mapper_port = entry.get("port"), entry["mapper_port"]
    if not all(type(number) is int for number in (mapper_port, 0 if port is None else port)):
        raise ValueError(f"port {port!r} or {mapper_port!r} is not a number")
    return ServerAddress(str(entry["host"]), port, mapper_port, tuple(map(str, entry["addresses"])))


def _guid(text: Any) -> Guid | None:
    return None if text is None else Guid.parse(text)


class KnownServers:
    """DirectoryServiceServersCollection with its CurrentServer; each change is saved at once."""

    def __init__(self, state: ClientState, store: StateStore | None = None) -> None:
        self._state = state
        self._store = store

    @classmethod
    def of(cls, servers: Sequence[ServerAddress], **known: Guid | None) -> KnownServers:
        """A list that nobody keeps; its first server is the current one."""
        if not servers:
            raise ValueError("a client needs to know a directory server")
        return cls(ClientState(tuple(dict.fromkeys(servers)), servers[0], **known))

    @classmethod
    def open(cls, store: StateStore, server: ServerAddress, **known: Guid | None) -> KnownServers:
        """What ``store`` remembers; the first time, the one server that the operator names."""
        state = store.load()
        if state is None:
            state = ClientState((server,), server, **known)
            store.save(state)
        return cls(state, store)

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def current(self) -> ServerAddress:
        return self._state.current

    @property
    def servers(self) -> tuple[ServerAddress, ...]:
        return self._state.servers

    @property
    def site(self) -> Guid | None:
        return self._state.site

    @property
    def enterprise(self) -> Guid | None:
        return self._state.enterprise

    def in_order(self) -> tuple[ServerAddress, ...]:
        """The current server, then the others."""
        return (self.current, *(server for server in self.servers if server != self.current))

    def use(self, server: ServerAddress) -> None:
        """Make one of them the current server."""
        if server != self.current:
            self._change(replace(self._state, current=server))

    def replace(self, found: Sequence[ServerAddress]) -> None:
        """Take a new list. How to reach a server that was known stays, and so does the current."""
        servers = [_as_known(server, self.servers) for server in found]
        current = next((s for s in servers if _same(s, self.current)), None)
        if current is None:
            current = self.current
            servers.insert(0, current)
        self._change(replace(self._state, servers=tuple(dict.fromkeys(servers)), current=current))

    def _change(self, state: ClientState) -> None:
        self._state = state
        if self._store is not None:
            try:
                self._store.save(state)
            except StorageError as error:  # a full disk is no reason to be without a directory
                log.error("the known directory servers are not remembered: %s", error)


def _same(one: ServerAddress, other: ServerAddress) -> bool:
    """A name or address in common, and no two ports that tell them apart."""
    if one.port != other.port and None not in (one.port, other.port):
        return False
    names = {name.lower() for name in (one.host, *one.addresses)}
    return bool(names & {name.lower() for name in (other.host, *other.addresses)})


def _as_known(server: ServerAddress, known: Sequence[ServerAddress]) -> ServerAddress:
    """A directory tells names and addresses; the ports are what the client knew."""
    old = next((k for k in known if _same(k, server)), None)
    return server if old is None else replace(old, addresses=server.addresses)
