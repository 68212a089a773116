"""What looking a server over gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from mqis.config.sections import Config
from mqis.protocol.ports import Store


class Severity(StrEnum):
    OK = "ok"
    #: Worth knowing, nothing to be done.
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    area: str
    what: str
    #: What to do; empty where nothing is.
    todo: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Patient:
    """One server, as far as it can be looked at."""

    file: Path
    config: Config
    #: None if it cannot be opened, which is a finding of its own.
    store: Store | None
    #: Whether a server has the store open; None if that cannot be known.
    running: bool | None
    #: Directory ports of other servers, where somebody knows them.
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
