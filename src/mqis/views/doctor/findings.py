"""The findings of the checks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from mqis.config.sections import Config
from mqis.protocol.ports import Store


class Severity(StrEnum):
    OK = "ok"
    #: For information; nothing has to be done.
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    area: str
    what: str
    #: The remedy; empty if nothing has to be done.
    todo: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Patient:
    """The server that is checked."""

    file: Path
    config: Config
    #: None if it cannot be opened, which is a separate finding.
    store: Store | None
    #: True if a server has the store open; None if that cannot be known.
    running: bool | None
    #: Known RPC ports of other servers.
    rpc_ports: dict[str, int] = field(default_factory=dict)


class Area:
    """Makes the findings of one area."""

    def __init__(self, name: str) -> None:
        self._name = name

    def ok(self, what: str) -> Finding:
        return Finding(Severity.OK, self._name, what)

    def note(self, what: str, todo: str = "") -> Finding:
        return Finding(Severity.NOTE, self._name, what, todo)

    def warning(self, what: str, todo: str) -> Finding:
        return Finding(Severity.WARNING, self._name, what, todo)

    def error(self, what: str, todo: str) -> Finding:
        return Finding(Severity.ERROR, self._name, what, todo)
