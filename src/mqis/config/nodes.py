"""The file ``nodes.json`` of a run directory: the servers with their addresses and files.

``mqis up`` writes it; the command line, the console and tests read it. Files of one server are in
its own directory; the accounts are in the run directory, and all servers share them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from mqis.config.errors import NodesError
from mqis.files import system_reason, write_whole
from mqis.texts import host_port

FILE = "nodes.json"
#: The accounts file of a run directory, which all its servers share.
ACCOUNTS = "accounts.toml"
#: The run directory of commands that name none.
DEFAULT_RUN = "mqis-run"
#: The variable that names another one.
RUN = "MQIS_RUN"
_FORMAT, _VERSION = "mqis nodes", 1
#: More servers than this are not all named in an error.
_FEW = 8


@dataclass(frozen=True, slots=True)
class NodePlace:
    """One server of a run directory. ``pid`` is None while it is stopped; paths are absolute."""

    name: str
    role: str
    site: str
    address: str
    rpc_port: int
    mapper_port: int
    queue_port: int
    discovery_port: int
    monitor_port: int
    home: str
    config: str
    store: str
    journal: str
    log: str
    pid: int | None = None
    restarts: int = 0

    @property
    def rpc_address(self) -> str:
        """The address for the option --server of commands."""
        return host_port(self.address, self.rpc_port)

    @property
    def monitor_url(self) -> str:
        return f"http://{host_port(self.address, self.monitor_port)}"


@dataclass(frozen=True, slots=True)
class Nodes:
    enterprise: str
    nodes: tuple[NodePlace, ...]
    #: The process of ``mqis up``, None after it ended.
    supervisor: int | None = None

    def __iter__(self) -> Iterator[NodePlace]:
        return iter(self.nodes)

    def find(self, name: str) -> NodePlace | None:
        return next((node for node in self.nodes if node.name.lower() == name.lower()), None)

    def named(self, name: str) -> NodePlace:
        if (found := self.find(name)) is not None:
            return found
        known = [node.name for node in self.nodes]
        if len(known) <= _FEW:
            raise NodesError(f"{name}: no such server; there are {', '.join(known)}")
        near = ", ".join(get_close_matches(name, known, n=3))
        hint = f"the nearest are {near}" if near else f"'mqis status --all' lists the {len(known)}"
        raise NodesError(f"{name}: no such server; {hint}")


def default_run() -> Path:
    """The run directory of a command line that names none."""
    return Path(os.environ.get(RUN, DEFAULT_RUN))


def is_run(run: Path) -> bool:
    """True for a run directory; raises ``NodesError`` if that cannot be seen."""
    try:
        (run / FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise NodesError(f"{run / FILE}: cannot be read: {system_reason(error)}") from error
    return True


def load_nodes(run: Path) -> Nodes:
    path = run / FILE
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NodesError(
            f"{path}: no such file; 'mqis up' writes it, --run names another directory"
        ) from None
    except OSError as error:
        raise NodesError(f"{path}: cannot be read: {system_reason(error)}") from error
    except ValueError as error:
        raise NodesError(f"{path}: cannot be read: {error}") from error
    if content.get("format") != _FORMAT or content.get("version") != _VERSION:
        raise NodesError(f"{path}: this file was not written by this version of 'mqis up'")
    known = {field.name for field in fields(NodePlace)}
    try:
        nodes = tuple(
            NodePlace(**{key: value for key, value in node.items() if key in known})
            for node in content["nodes"]
        )
        return Nodes(content["enterprise"], nodes, content["supervisor"])
    except (KeyError, TypeError, AttributeError) as error:
        raise NodesError(f"{path}: this file is incomplete: {error}") from error


def supervised_place(config: Path) -> tuple[Path, NodePlace] | None:
    """The run directory and the server that a configuration belongs to; None if to no run."""
    real = config.resolve()
    run = real.parent.parent.parent
    try:
        places = [place for place in load_nodes(run) if Path(place.config).resolve() == real]
    except NodesError:
        return None
    return (run, places[0]) if places else None


def save_nodes(run: Path, nodes: Nodes) -> None:
    """Writes the file atomically: a reader never sees half of it."""
    path = run / FILE
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "enterprise": nodes.enterprise,
        "supervisor": nodes.supervisor,
        "nodes": [asdict(node) for node in nodes],
    }
    write_whole(path, json.dumps(content, indent=2))
