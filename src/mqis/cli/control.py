"""``mqis stop``, ``start``, ``kill``, ``where`` and ``down``: control a running enterprise."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption, ServerArgument
from mqis.cli.output import print_json, say
from mqis.config.file import load
from mqis.config.nodes import NodePlace, load_nodes
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.control import LOCK, ask
from mqis.enterprise.left_running import recover
from mqis.server.restoremark import mark_of
from mqis.texts import duration
from mqis.wire.errors import MqisError

_LOOK_S = 0.1


def stop(server: ServerArgument, *, run: RunOption = DEFAULT_RUN, json: JsonOption = False) -> None:
    """Stop a server gracefully; it stays down until 'mqis start', or the next 'mqis up'."""
    name = load_nodes(run).named(server).name
    ask(run, "stop", name)
    _tell(
        f"{name} is stopped; 'mqis start {name}' brings it back",
        {"server": name, "state": "stopped"} if json else None,
    )


def start(
    server: ServerArgument, *, run: RunOption = DEFAULT_RUN, json: JsonOption = False
) -> None:
    """Start a server that was stopped or that failed; returns when the server is ready."""
    place = load_nodes(run).named(server)
    name = place.name
    pid = ask(run, "start", name)["pid"]
    origin = _restored_from(place)
    facts = {"server": name, "state": "ready", "process": pid, "restored_from": origin}
    _tell(f"{name} is ready, process {pid}", facts if json else None)
    if origin is not None and not json:
        wait_s = load(Path(place.config)).replication.recovery_wait_s
        say(
            f"it is restored from the {origin}, and lacks what is newer until the other servers "
            f"have answered; for those that do not it waits {duration(wait_s)}: 'mqis status' "
            "shows it as recovering",
            "yellow",
        )


def _restored_from(place: NodePlace) -> str | None:
    """What a server was restored from that has not caught up with the others; else None."""
    with suppress(MqisError), closing(open_store(place.store)) as store, store.read() as view:
        return mark_of(view)
    return None


def kill(
    server: ServerArgument,
    *,
    run: RunOption = DEFAULT_RUN,
    stay: Annotated[
        bool, typer.Option("--stay-down", help="Do not restart it; 'mqis start' does.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Kill a server with SIGKILL, as a power failure would; it is restarted at once."""
    name = load_nodes(run).named(server).name
    pid = ask(run, "kill", name, stay=stay)["pid"]
    after = "it stays down" if stay else "it is brought back"
    facts = {"server": name, "state": "killed", "process": pid, "stays_down": stay}
    _tell(f"killed {name}, process {pid}; {after}", facts if json else None)


def where(
    server: ServerArgument, *, run: RunOption = DEFAULT_RUN, json: JsonOption = False
) -> None:
    """Print the address of a server, for other programs; --server of commands takes its name."""
    node = load_nodes(run).named(server)
    if json:
        facts = {"address": node.rpc_address, "mapper_port": node.mapper_port}
        print_json({"server": node.name, **facts})
    else:
        print(node.rpc_address)


def down(*, run: RunOption = DEFAULT_RUN, json: JsonOption = False) -> None:
    """Stop an enterprise in order: backup controllers, primary controllers, the PEC."""
    pid = holder(run / LOCK)
    if pid is None:
        ended = recover(run)
        if not ended:
            load_nodes(run)  # raises if there never was an enterprise
        _tell(
            "\n".join(ended) or f"{run}: nothing runs there",
            {"state": "down", "recovered": ended} if json else None,
        )
        return
    ask(run, "down")
    while holder(run / LOCK) == pid:
        time.sleep(_LOOK_S)
    name = load_nodes(run).enterprise
    _tell(f"{name} is down", {"enterprise": name, "state": "down"} if json else None)


def _tell(text: str, facts: Mapping[str, object] | None) -> None:
    """Prints the facts as JSON if there are any, else the text."""
    if facts is not None:
        print_json(facts)
        return
    for line in text.splitlines():
        say(line)
