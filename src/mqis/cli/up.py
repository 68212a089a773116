"""``mqis up``: runs a whole enterprise on this computer."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mqis.cli.applying import (
    agreed_to,
    apply_live,
    planned_change,
    show_beginning,
    write_adopted,
)
from mqis.cli.options import DEFAULT_RUN, JsonOption, RunOption
from mqis.cli.output import (
    DryRunOption,
    YesOption,
    cell,
    console,
    error_console,
    fitting,
    print_json,
    say,
    table,
)
from mqis.cli.remote import administer
from mqis.config import logs
from mqis.config.errors import ConfigError, NodesError
from mqis.config.nodes import FILE, Nodes, load_nodes
from mqis.config.processlocks import holder
from mqis.config.sections import LogSection
from mqis.enterprise.control import LOCK
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.kept_plan import PLAN
from mqis.enterprise.launch import Launch, launch, make_run_directory
from mqis.enterprise.plan import DEFAULT_NAME, RunPlan, load_plan
from mqis.enterprise.setup import password_of
from mqis.enterprise.states import ProcessState, load_states
from mqis.files import open_log
from mqis.texts import counted, duration

LOG = "supervisor.log"
_LOOK_S = 0.1
_STYLES = {
    ProcessState.READY: "green",
    ProcessState.STARTING: "yellow",
    ProcessState.PAUSING: "red",
    ProcessState.FAILED: "bold red",
}


def up(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help=f"The enterprise file. Default: ./{DEFAULT_NAME}, else that of the last time.",
            show_default=False,
        ),
    ] = None,
    *,
    run: RunOption = DEFAULT_RUN,
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            "-d",
            help="Return when all servers are ready; they stay up. Exit status 1 if one of them "
            "cannot start; the others stay up.",
        ),
    ] = False,
    wait: Annotated[
        int, typer.Option(metavar="SECONDS", min=1, help="With --detach: wait at most this long.")
    ] = 180,
    one_address: Annotated[
        bool,
        typer.Option(
            "--one-address", help="Run all servers at 127.0.0.1, each with its own ports."
        ),
    ] = False,
    example: Annotated[
        bool, typer.Option("--example", help="Only print an example file with comments.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Delete what the file had the last time and has no more."),
    ] = False,
    adopt_: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Only write into the file what commands have changed, such as roles and costs.",
        ),
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    agreed: Annotated[bool, typer.Option("--agreed", hidden=True)] = False,
    json: JsonOption = False,
) -> None:
    """Bring up an enterprise, or change one that is up: every server is a process, restarted if
    it exits.

    The first time, the enterprise is founded, the servers join it, and the objects of the file are
    created in the directory. Later, what the file has changed is shown and carried out while
    everything else goes on; what it has no more stays, unless --remove is given. SIGTERM and SIGINT
    stop the servers in order, a second one at once.
    """
    if example:
        print(EXAMPLE, end="")
        return
    path = _file(file, run)
    plan, text = load_plan(path), path.read_text(encoding="utf-8-sig")
    if remove and plan.left_out:
        raise ConfigError(
            f"{path}: {'; '.join(plan.left_out)}; --remove could take such an entry for one that "
            "is gone, so nothing was changed"
        )
    own = False if one_address else None
    base, source = path.absolute().parent, str(path)
    what = Launch(plan, run, administer, text, base, source, own_addresses=own, remove=remove)
    alive = holder(run / LOCK) is not None
    change = None if agreed else planned_change(what)
    if adopt_:
        write_adopted(path, what, change, dry_run=dry_run, json=json)
        return
    if dry_run and change is None:
        show_beginning(what, json=json)
        return
    if change is not None and not agreed_to(change, what, yes=yes, dry_run=dry_run, json=json):
        return
    if alive and change is not None:
        apply_live(change, what, path, json=json)
    elif detach:
        _detach(what, path, wait, json=json)
    else:
        _stay(what, json=json)


def _file(file: Path | None, run: Path) -> Path:
    if file is not None:
        return file
    for path in (Path(DEFAULT_NAME), run / PLAN):
        if path.exists():
            return path
    raise ConfigError(
        f"no enterprise is named: there is no {DEFAULT_NAME} here and nothing in {run}; 'mqis up "
        f"--example > {DEFAULT_NAME}' writes one to start from"
    )


# --- in the foreground ----------------------------------------------------------------------------


def _stay(what: Launch, *, json: bool) -> None:
    """Supervises the servers in this process."""
    logs.configure(LogSection(), _log_of(what.run))
    target = error_console()

    def print_warning(text: str) -> None:
        target.print(cell(text, "yellow"), soft_wrap=True)

    asyncio.run(_launch(what, print_warning, _print_ready if json else _tell_ready))
    if not json:
        say(f"{what.plan.enterprise.name} is down")
    logging.shutdown()


def _log_of(run: Path) -> TextIO:
    make_run_directory(run)
    return TextIOWrapper(open_log(run / LOG), encoding="utf-8", line_buffering=True)


async def _launch(
    what: Launch, report: Callable[[str], None], tell: Callable[[Launch, Nodes, float], None]
) -> None:
    began = time.monotonic()
    live = Live(console=error_console(), refresh_per_second=8, transient=True)
    shown = live.console.is_terminal

    async def refresh() -> None:
        while True:
            live.update(_progress(what.run, what.plan, began))
            await asyncio.sleep(_LOOK_S)

    def ready(nodes: Nodes) -> None:
        refreshing.cancel()
        if shown:
            live.stop()
        tell(what, nodes, time.monotonic() - began)

    if shown:
        live.start()
    refreshing = asyncio.create_task(refresh())
    try:
        await launch(what, ready, report)
    finally:
        refreshing.cancel()
        if shown:
            live.stop()


def _tell_ready(what: Launch, nodes: Nodes, seconds: float) -> None:
    plan = what.plan
    target = console()
    rows = [
        {column: cell(_shown(getattr(node, field))) for column, field in _PLACES.items()}
        for node in nodes
    ]
    target.print(fitting(tuple(_PLACES), rows, _DROPPED, target.width))
    administrator = plan.administrator
    if not administrator.password_file:
        say(f"export MQIS_USER='{plan.domain_of(administrator)}\\{administrator.name}'", "cyan")
        say(
            f"export MQIS_PASSWORD_FILE='{password_of(what.run.absolute(), administrator)}'", "cyan"
        )
    failed = _failed(what.run)
    total = counted(len(nodes.nodes), "server")  # last: scripts wait for this line
    servers = f"{len(nodes.nodes) - len(failed)} of {total}" if failed else total
    say(f"{plan.enterprise.name} is up: {servers} ready after {duration(seconds)}, in {what.run}")
    sys.stdout.flush()


#: The columns of the servers, each with the field of ``NodePlace``.
_PLACES = {
    "server": "name",
    "role": "role",
    "site": "site",
    "RPC": "rpc_address",
    "mapper": "mapper_port",
    "queues": "queue_port",
    "discovery": "discovery_port",
    "process": "pid",
}
#: The columns that are left out first for lack of room.
_DROPPED = ("discovery", "queues", "mapper", "process", "site")


def _shown(value: object) -> str:
    return "" if value is None else str(value)


def _failed(run: Path) -> dict[str, str]:
    """The reasons of the servers that the supervisor has given up, by name."""
    states = load_states(run)
    found = {} if states is None else states.servers
    return {name: s.reason for name, s in found.items() if s.state is ProcessState.FAILED}


def _refused(run: Path) -> tuple[str, ...]:
    """The objects of the file that a server refused."""
    states = load_states(run)
    return () if states is None else states.refused


def _print_ready(what: Launch, nodes: Nodes, seconds: float) -> None:
    """The same for programs."""
    administrator = what.plan.administrator
    given = administrator.password_file
    password = what.base / given if given else password_of(what.run.absolute(), administrator)
    print_json(
        {
            "enterprise": what.plan.enterprise.name,
            "run": str(what.run.absolute()),
            "user": f"{what.plan.domain_of(administrator)}\\{administrator.name}",
            "password_file": str(password),
            "seconds": round(seconds, 3),
            "servers": [asdict(node) for node in nodes],
            "failed": _failed(what.run),
            "refused": _refused(what.run),
        }
    )
    sys.stdout.flush()


# --- in the background ----------------------------------------------------------------------------


def _detach(what: Launch, path: Path, wait: int, *, json: bool) -> None:
    run = what.run
    make_run_directory(run)
    pid = holder(run / LOCK)
    if pid is not None:
        raise NodesError(
            f"{run}: this enterprise is up already, under process {pid}; 'mqis down' ends it"
        )
    command = [sys.executable, "-m", "mqis.cli.main", "up", str(path.absolute())]
    command += ["--run", str(run.absolute()), "--agreed"]
    if what.remove:
        command.append("--remove")
    if what.own_addresses is False:
        command.append("--one-address")
    began = time.monotonic()
    with open_log(run / "up.out") as out:
        out.truncate(0)
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # What it prints goes to this terminal in the end.
            env={k: v for k, v in os.environ.items() if k != "MQIS_RUN"}
            | {"COLUMNS": str(console().width)},
        )
    target = error_console()
    with Live(console=target, refresh_per_second=8, transient=True) as live:
        while not _is_up(run, process.pid):
            if process.poll() is not None:
                raise NodesError(_last_output(run))
            if time.monotonic() - began > wait:
                raise NodesError(
                    f"not all servers are ready after {duration(wait)}; starting goes on: 'mqis "
                    f"status' shows it, 'mqis down' ends it, {run / LOG} tells more"
                )
            if target.is_terminal:
                live.update(_progress(run, what.plan, began))
            time.sleep(_LOOK_S)
    if json:
        _print_ready(what, load_nodes(run), time.monotonic() - began)
    else:
        sys.stdout.write((run / "up.out").read_text(encoding="utf-8"))
    if _failed(run) or _refused(run):
        raise typer.Exit(1)


def _is_up(run: Path, pid: int) -> bool:
    """True if this supervisor has brought all servers up and printed its last line."""
    if holder(run / LOCK) != pid or not (run / FILE).exists():
        return False
    states = load_states(run)
    return states is not None and states.complete and b" is up: " in (run / "up.out").read_bytes()


def _last_output(run: Path) -> str:
    """The last line of output of a supervisor that ended."""
    lines = (run / "up.out").read_text(encoding="utf-8").strip().splitlines()
    return (
        lines[-1].removeprefix("mqis: ")
        if lines
        else f"the supervisor ended at once; see {run / LOG}"
    )


def _progress(run: Path, plan: RunPlan, began: float) -> Group:
    """A table of the servers and a progress bar, shown while they start."""
    states = load_states(run)
    known = states.servers if states is not None and holder(run / LOCK) is not None else {}
    made = table("server", "role", "site", "state")
    ready = 0
    for server in plan.servers:
        state = known[server.name].state if server.name in known else ProcessState.WAITING
        ready += state is ProcessState.READY
        style = _STYLES.get(state, "dim")
        texts = (server.name, server.role.value, server.site)
        made.add_row(*map(cell, texts), Text(state.value, style=style))
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    what = "filling the directory" if ready == len(plan.servers) else "bringing up servers"
    task = bar.add_task(what, total=len(plan.servers), completed=ready)
    bar.tasks[task].start_time = bar.get_time() - (time.monotonic() - began)
    return Group(made, bar)
