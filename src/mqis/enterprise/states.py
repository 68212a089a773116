"""``supervisor.json`` of a run directory: how the servers are, as their supervisor knows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

FILE = "supervisor.json"


class State(StrEnum):
    """Of one server."""

    #: Not begun with.
    WAITING = "waiting"
    #: Its process runs; it has no directory yet, or does not listen yet.
    STARTING = "starting"
    READY = "ready"
    #: It died and comes back after a pause.
    PAUSING = "pausing"
    STOPPING = "stopping"
    #: Somebody wanted that.
    STOPPED = "stopped"
    #: It died too often; only 'mqis start' brings it back.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Supervised:
    """A server in the eyes of its supervisor; ``since`` in seconds since the epoch."""

    state: State
    since: float
    #: Of the last end, if it was not wanted.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Supervision:
    #: The path of the socket on which commands are taken.
    control: str
    #: Whether everything that the plan has is there.
    complete: bool
    servers: Mapping[str, Supervised]


def load_states(run: Path) -> Supervision | None:
    """None where there is nothing that could be read."""
    try:
        content = json.loads((run / FILE).read_text(encoding="utf-8"))
        servers = {
            name: Supervised(State(known["state"]), known["since"], known["reason"])
            for name, known in content["servers"].items()
        }
        return Supervision(content["control"], content["complete"], servers)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_states(run: Path, supervision: Supervision) -> None:
    """Whole or not at all."""
    draft = run / f"{FILE}.new"
    draft.write_text(json.dumps(asdict(supervision), indent=2), encoding="utf-8")
    draft.replace(run / FILE)
