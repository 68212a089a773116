"""The directory servers that a client knows and saves (MS-MQDS 3.2.1.3, 3.2.1.4, 3.2.1.7)."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from mqis.client.servers import ServerAddress
from mqis.files import write_whole
from mqis.protocol.errors import StorageError
from mqis.wire.guid import Guid

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientState:
    """The state that a client saves. ``current`` is always one of ``servers``."""

    servers: tuple[ServerAddress, ...]
    current: ServerAddress
    #: SiteIdentifier: the client's site.
    site: Guid | None = None
    #: The enterprise of the servers.
    enterprise: Guid | None = None

    def __post_init__(self) -> None:
        if self.current not in self.servers:
            raise ValueError(f"the current server {self.current} is not one of the known servers")


class StateStore(Protocol):
    """The storage of a client's state across restarts."""

    def load(self) -> ClientState | None:
        """The state that was saved last; None if there is none."""

    def save(self, state: ClientState) -> None: ...


class JsonFile:
    """A ``StateStore`` in a small file, which is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> ClientState | None:
        """Reads the state; None if there is no file."""
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
        """Writes the state."""
        text = json.dumps(_as_json(state), indent=2) + "\n"
        try:
            write_whole(self.path, text)
        except OSError as error:
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
    """DirectoryServiceServersCollection with its CurrentServer; saves every change at once."""

    def __init__(self, state: ClientState, store: StateStore | None = None) -> None:
        self._state = state
        self._store = store

    @classmethod
    def of(cls, servers: Sequence[ServerAddress], **known: Guid | None) -> KnownServers:
        """Makes a list that is not saved; its first server is the current one."""
        if not servers:
            raise ValueError("a client needs at least one directory server")
        return cls(ClientState(tuple(dict.fromkeys(servers)), servers[0], **known))

    @classmethod
    def open(cls, store: StateStore, server: ServerAddress, **known: Guid | None) -> KnownServers:
        """Loads the saved state; the first time, saves the server that the operator names."""
        state = store.load()
        if state is None:
            state = ClientState((server,), server, **known)
            store.save(state)
        return cls(state, store)

    @property
    def state(self) -> ClientState:
        """All of it, as it is saved."""
        return self._state

    @property
    def current(self) -> ServerAddress:
        """The server that the next call goes to."""
        return self._state.current

    @property
    def servers(self) -> tuple[ServerAddress, ...]:
        """Every known server."""
        return self._state.servers

    @property
    def site(self) -> Guid | None:
        """The site of this computer, if it is known."""
        return self._state.site

    @property
    def enterprise(self) -> Guid | None:
        """The enterprise of this computer, if it is known."""
        return self._state.enterprise

    def in_order(self) -> tuple[ServerAddress, ...]:
        """The current server, followed by the others."""
        return (self.current, *(server for server in self.servers if server != self.current))

    def use(self, server: ServerAddress) -> None:
        """Makes ``server`` the current one."""
        if server != self.current:
            self._change(replace(self._state, current=server))

    def replace(self, found: Sequence[ServerAddress]) -> None:
        """Replaces the list, but keeps the ports of known servers and the current server."""
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
            except StorageError as error:  # a full disk must not cost the client its directory
                log.error("the known directory servers could not be saved: %s", error)


def _same(one: ServerAddress, other: ServerAddress) -> bool:
    """True if both have a name or address in common and no different ports."""
    if one.port != other.port and None not in (one.port, other.port):
        return False
    names = {name.lower() for name in (one.host, *one.addresses)}
    return bool(names & {name.lower() for name in (other.host, *other.addresses)})


def _as_known(server: ServerAddress, known: Sequence[ServerAddress]) -> ServerAddress:
    """Returns ``server`` with the known ports: a directory lists names and addresses only."""
    old = next((k for k in known if _same(k, server)), None)
    return server if old is None else replace(old, addresses=server.addresses)
