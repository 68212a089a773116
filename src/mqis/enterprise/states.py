"""The file ``supervisor.json`` of a run directory: the states of the servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from mqis.files import write_whole

FILE = "supervisor.json"


class ProcessState(StrEnum):
    """The state of one server."""

    #: Not started yet.
    WAITING = "waiting"
    #: Its process runs; it has no directory yet, or does not listen yet.
    STARTING = "starting"
    READY = "ready"
    #: It exited, and is restarted after a pause.
    PAUSING = "pausing"
    STOPPING = "stopping"
    #: An operator stopped it.
    STOPPED = "stopped"
    #: It exited too often; only 'mqis start' restarts it.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Supervised:
    """The state of a server as its supervisor knows it; ``since`` in seconds since the epoch."""

    state: ProcessState
    since: float
    #: The reason of the last unexpected exit.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Supervision:
    #: The path of the control socket.
    control: str
    #: True once the whole plan is carried out.
    complete: bool
    servers: Mapping[str, Supervised]
    #: Objects of the plan that a server refused, each with the reason.
    refused: tuple[str, ...] = ()


def load_states(run: Path) -> Supervision | None:
    """Reads the states; None if there are none or they cannot be read."""
    try:
        content = json.loads((run / FILE).read_text(encoding="utf-8"))
        servers = {
            name: Supervised(ProcessState(known["state"]), known["since"], known["reason"])
            for name, known in content["servers"].items()
        }
        refused = tuple(content.get("refused", ()))
        return Supervision(content["control"], content["complete"], servers, refused)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_states(run: Path, supervision: Supervision) -> None:
    """Writes the states atomically."""
    write_whole(run / FILE, json.dumps(asdict(supervision), indent=2))
