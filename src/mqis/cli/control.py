"""``mqis stop``, ``start``, ``kill``, ``where`` and ``down``: control a running enterprise."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from mqis.cli.enterprise import DEFAULT_RUN, RunOption, ServerArgument
from mqis.cli.output import say
from mqis.config.nodes import load_nodes
from mqis.config.processlocks import holder
from mqis.enterprise.control import LOCK, ask
from mqis.enterprise.recovery import recover

_LOOK_S = 0.1


def stop(server: ServerArgument, *, run: RunOption = DEFAULT_RUN) -> None:
    """Stop a server gracefully; it stays down until 'mqis start', or the next 'mqis up'."""
    name = load_nodes(run).named(server).name
    ask(run, "stop", name)
    say(f"{name} is stopped; 'mqis start {name}' brings it back")


def start(server: ServerArgument, *, run: RunOption = DEFAULT_RUN) -> None:
    """Start a server that was stopped or that failed; returns when the server is ready."""
    name = load_nodes(run).named(server).name
    pid = ask(run, "start", name)["pid"]
    say(f"{name} is ready, process {pid}")


def kill(
    server: ServerArgument,
    *,
    run: RunOption = DEFAULT_RUN,
    stay: Annotated[
        bool, typer.Option("--stay-down", help="Do not restart it; 'mqis start' does.")
    ] = False,
) -> None:
    """Kill a server with SIGKILL, as a power failure would; it is restarted at once."""
    name = load_nodes(run).named(server).name
    pid = ask(run, "kill", name, stay=stay)["pid"]
    after = "it stays down" if stay else "it is brought back"
    say(f"killed {name}, process {pid}; {after}")


def where(server: ServerArgument, *, run: RunOption = DEFAULT_RUN) -> None:
    """Print the address of a server, for the option --server of other commands."""
    node = load_nodes(run).named(server)
    print(f"{node.address}:{node.rpc_port}")


def down(*, run: RunOption = DEFAULT_RUN) -> None:
    """Stop an enterprise in order: backup controllers, primary controllers, the PEC."""
    pid = holder(run / LOCK)
    if pid is None:
        ended = recover(run)
        for text in ended:
            say(text)
        if not ended:
            load_nodes(run)  # raises if there never was an enterprise
            say(f"{run}: nothing runs there")
        return
    ask(run, "down")
    while holder(run / LOCK) == pid:
        time.sleep(_LOOK_S)
    say(f"{load_nodes(run).enterprise} is down")
