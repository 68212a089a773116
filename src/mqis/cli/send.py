"""``mqis send``: sends a message over real sockets and compares its path with the explained one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import zip_longest
from typing import Annotated

import typer

from mqis.cli.login import OptionalLogonOptions
from mqis.cli.options import ConfigOption, JsonOption, StoreOption, spread
from mqis.cli.output import cell, console, print_json, say, table
from mqis.cli.route import DirectoryOption, WithoutOption
from mqis.cli.routed import RoutedDirectory, opened_directory
from mqis.lab.sending import QUEUE, Journey, SendingEnterprise
from mqis.protocol.queueing.queued_message import PrivateQueue, PublicQueue
from mqis.protocol.routing.explain import Explanation, ObjectNames, explain
from mqis.protocol.routing.snapshot import Snapshot
from mqis.texts import counted, duration
from mqis.views.routes.looking_up import find_links
from mqis.views.routes.route_text import blame
from mqis.wire.guid import Guid

Queue = PrivateQueue | PublicQueue


@spread
def send(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A machine, or a site (its gate).")],
    destination: Annotated[
        str,
        typer.Argument(metavar="TO", help="A machine, a site, or a public queue: MACHINE\\QUEUE."),
    ],
    *,
    without: WithoutOption = None,
    body: Annotated[str, typer.Option(metavar="TEXT", help="The text of the message.")] = "hello",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="The time that it may take.")
    ] = 10.0,
    json: JsonOption = False,
    directory: DirectoryOption = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    access: OptionalLogonOptions,
) -> None:
    """Send a message through the enterprise, and compare its path with that of 'mqis route'.

    Queue managers for the machines on its path are started here, on loopback ports; each decides
    for itself about the next hop. The exit status is 1 if the message does not arrive, or takes
    another path than the explained one.
    """
    with opened_directory(directory, store, config, access) as routed:
        snapshot, start = routed.snapshot, routed.machine(source)
        queue = _queue(routed, destination)
    removed = [link for text in without or () for link in find_links(snapshot, text)]
    left = snapshot.without_links(removed) if removed else snapshot
    found = explain(left, start, queue.queue_manager)
    journey = asyncio.run(_travel(left, start, queue, body, timeout))
    if json:
        print_json(_as_json(journey, found, queue, left, removed))
    else:
        _show(journey, found, queue, left, [ObjectNames(snapshot).link(link) for link in removed])
    if journey.failure is not None or not journey.took(found):
        raise typer.Exit(1)


async def _travel(
    snapshot: Snapshot, source: Guid, queue: Queue, body: str, timeout_s: float
) -> Journey:
    owners = {queue.identifier: queue.queue_manager} if isinstance(queue, PublicQueue) else {}
    async with SendingEnterprise(snapshot, owners.get) as enterprise:
        return await enterprise.send(source, queue, body.encode(), timeout_s)


def _queue(routed: RoutedDirectory, text: str) -> Queue:
    if "\\" in text:
        return routed.queue(text)
    return PrivateQueue(routed.machine(text), QUEUE)


# --- output ---------------------------------------------------------------------------------------


def _format_name(queue: Queue) -> str:
    if isinstance(queue, PublicQueue):
        return f"PUBLIC={queue.identifier}"
    return f"PRIVATE={queue.queue_manager}\\{queue.number:08x}"


def _show(
    journey: Journey, found: Explanation, queue: Queue, snapshot: Snapshot, removed: list[str]
) -> None:
    names = ObjectNames(snapshot)
    ends = f"{names.machine(journey.source)} to {names.machine(journey.destination)}"
    hops = counted(len(journey.passings), "hop")
    arrived = f"arrived after {hops}, {duration(journey.seconds)}"
    say(f"{ends}: {arrived if journey.failure is None else 'did not arrive'}", "bold")
    say(f"  as {_format_name(queue)}", "dim")
    for link in removed:
        say(f"  without {link}", "dim")
    shown = table("hop", "count", "travelled", "explained")
    travelled = [
        (names.machine(p.machine), names.machine(p.next), p.hops) for p in journey.passings
    ]
    explained = [
        f"{names.machine(step.machine)} -> {names.machine(step.next)}"
        for step in found.steps
        if step.next is not None
    ]
    for number, (real, expected) in enumerate(zip_longest(travelled, explained), 1):
        way = "" if real is None else f"{real[0]} -> {real[1]}"
        style = "" if way == expected else "red"
        cost = "" if real is None else str(real[2])
        shown.add_row(cell(str(number)), cell(cost), cell(way, style), cell(expected or "", style))
    if shown.row_count:
        console().print(shown)
    _say_outcome(journey, found, names)


def _say_outcome(journey: Journey, found: Explanation, names: ObjectNames) -> None:
    if journey.failure is not None and found.breakage is not None and journey.took(found):
        for line in blame(found, names):  # the same failure, with names
            say(*line)
    elif journey.failure is not None:
        say(f"no further: {journey.failure}", "red")
    if journey.nack is not None:
        say(f"the sender got a negative acknowledgement: class 0x{journey.nack:04x}", "red")
    if journey.took(found):
        say("the travelled path is the explained one", "green")
    else:
        path = " - ".join(names.machine(machine) for machine in found.machines)
        say(f"the travelled path is NOT the explained one: {path}", "red")


def _as_json(
    journey: Journey,
    found: Explanation,
    queue: Queue,
    snapshot: Snapshot,
    removed: Sequence[Guid],
) -> dict[str, object]:
    names = ObjectNames(snapshot)

    def machine(guid: Guid) -> dict[str, str]:
        return {"id": str(guid), "name": names.machine(guid)}

    return {
        "source": machine(journey.source),
        "destination": machine(journey.destination),
        "queue": _format_name(queue),
        "arrived": journey.failure is None,
        "failure": journey.failure,
        "nack": journey.nack,
        "seconds": round(journey.seconds, 6),
        "hops": [
            {"machine": machine(p.machine), "next": machine(p.next), "count": p.hops}
            for p in journey.passings
        ],
        "travelled": [machine(guid) for guid in journey.machines],
        "explained": [machine(guid) for guid in found.machines],
        "equal": journey.took(found),
        "without": [str(link) for link in removed],
    }
