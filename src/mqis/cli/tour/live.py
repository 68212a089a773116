"""The tour of a live enterprise of five servers."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from time import monotonic

from mqis.cli.administer import administer
from mqis.cli.output import cell, table
from mqis.cli.tour.console import opened_console, read_console
from mqis.cli.tour.directory import directory_steps
from mqis.cli.tour.file import briefly
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.healing import Episode, healing
from mqis.cli.tour.hostile import hostile
from mqis.cli.tour.oletx import partners
from mqis.cli.tour.pipeline import pipeline
from mqis.cli.tour.reading import table_rows
from mqis.cli.tour.routing import routes
from mqis.cli.tour.site import Tour
from mqis.cli.tour.slip import UndoneSlip, slip
from mqis.config.file import load
from mqis.config.nodes import FILE, NodePlace, NodesError
from mqis.config.processlocks import holder
from mqis.config.stores import open_store
from mqis.enterprise.control import LOCK
from mqis.enterprise.example import EXAMPLE
from mqis.enterprise.launch import Launch, RunningEnterprise
from mqis.enterprise.plan import parse_plan
from mqis.enterprise.recovery import recover
from mqis.enterprise.states import ProcessState
from mqis.texts import duration
from mqis.wire.errors import MqisError

_LOOK_S = 0.05


def live(guide: Guide, directory: Path, *, once: bool) -> None:
    """Runs the whole tour in ``directory``; the servers end with it."""
    _make_room(directory)
    logging.getLogger("mqis").setLevel(logging.CRITICAL)  # the steps report what matters
    try:
        asyncio.run(_walk(guide, directory, once=once))
    except asyncio.CancelledError:
        raise MqisError("the tour was interrupted before its last step") from None


def _make_room(directory: Path) -> None:
    """Deletes the files of an earlier tour, and refuses to delete any others."""
    run = directory / "run"
    if holder(run / LOCK) is not None:
        raise NodesError(
            f"{run}: a tour is still running there; end it, or name another --directory"
        )
    if run.exists():
        if not (run / FILE).exists() and any(run.iterdir()):
            raise NodesError(
                f"{run}: this is not the run directory of a tour; name another --directory"
            )
        recover(run)
        shutil.rmtree(run)
    directory.mkdir(parents=True, exist_ok=True)


async def _walk(guide: Guide, directory: Path, *, once: bool) -> None:
    began = monotonic()
    async with _enterprise(guide, directory) as tour, opened_console(guide, tour) as url:
        await directory_steps(guide, tour)
        await hostile(guide, tour)
        mistake = await slip(guide, tour)
        episode = await healing(guide, tour)
        await asyncio.to_thread(_routes, guide, tour)
        await asyncio.to_thread(partners, guide)
        await _pipeline(guide, tour, mistake, episode)
        await asyncio.to_thread(briefly, guide, directory / "enterprise.db")
        took = monotonic() - began
        await read_console(guide, tour, url, took, once=once)
        if not once:
            guide.line("stopping: backup controllers, primary controllers, the PEC", "dim")


@asynccontextmanager
async def _enterprise(guide: Guide, directory: Path) -> AsyncIterator[Tour]:
    """Brings the enterprise up as 'mqis up' does, supervised by this process."""
    plan = parse_plan(tomllib.loads(EXAMPLE))
    guide.step(
        "Five servers", "an enterprise is founded in Amsterdam, four servers join it over RPC"
    )
    messages: list[str] = []
    what = Launch(plan, directory / "run", administer, EXAMPLE, directory)
    async with RunningEnterprise(what, messages.append) as enterprise:
        tour = Tour(enterprise, plan, directory)
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _on_signal(tour, task))
        began = monotonic()
        with guide.waiting("servers start and get their directory", len(plan.servers)) as bar:
            await _up(enterprise, bar)
            status = await tour.converged()
        for text in messages:
            guide.line(f"   {text}", "dim")
        _show_servers(guide, tour)
        guide.confirm_equal(
            f"five processes serve after {duration(monotonic() - began)}",
            {child.state for child in enterprise.supervisor.children.values()},
            {ProcessState.READY},
        )
        guide.confirm_equal(
            "they accept only messages that the sender's key has signed",
            {node.name: _signing(node) for node in tour.nodes},
            {node.name: "require" for node in tour.nodes},
        )
        guide.confirm_equal(
            "each has all four partitions, up to the last change",
            ({server.name: len(server.replicas) for server in status.servers}, status.findings),
            ({server.name: 4 for server in plan.servers}, ()),
        )
        yield tour


async def _up(enterprise: RunningEnterprise, bar: Callable[[float], None]) -> None:
    coming = asyncio.create_task(enterprise.bring_up())
    try:
        while not coming.done():
            states = [child.state for child in enterprise.supervisor.children.values()]
            bar(states.count(ProcessState.READY))
            await asyncio.wait({coming}, timeout=_LOOK_S)
        await coming
    finally:
        coming.cancel()


def _on_signal(tour: Tour, task: asyncio.Task[object]) -> Callable[[], None]:
    """Returns the signal handler: it ends the console if that is up, else the tour."""

    def end() -> None:
        if tour.staying:
            tour.ended.set()
        else:
            task.cancel()

    return end


def _signing(node: NodePlace) -> str:
    """What the server's own configuration says of the messages that it accepts."""
    return load(Path(node.config)).replication.signing.value


def _show_servers(guide: Guide, tour: Tour) -> None:
    made = table("server", "role", "site", "address", "RPC", "mapper", "queues", "process")
    for node in tour.nodes:
        made.add_row(
            *map(cell, (node.name, node.role, node.site, node.address)),
            *map(str, (node.rpc_port, node.mapper_port, node.queue_port, node.pid)),
        )
    shown = [row[:3] for row in table_rows(guide.show(made))]
    guide.confirm_equal(
        "the servers are those of the enterprise file, each with an address of its own",
        (sorted(shown), len({node.address for node in tour.nodes})),
        (sorted([s.name, str(s.role), s.site] for s in tour.plan.servers), len(shown)),
    )


def _routes(guide: Guide, tour: Tour) -> None:
    """Explains routes from the copy of a running backup controller."""
    costs = {frozenset(link.sites): link.cost for link in tour.plan.links}
    with closing(open_store(tour.node("ber-dir2").store)) as store, store.read() as view:
        routes(guide, view, "ams-desk1", "C14", costs)


async def _pipeline(guide: Guide, tour: Tour, mistake: UndoneSlip, episode: Episode) -> None:
    status = await tour.converged()
    if not status.converged:
        raise MqisError(f"the replicas do not agree yet, so the audit would fail: {status.summary}")
    await asyncio.to_thread(pipeline, guide, tour, mistake, episode)
