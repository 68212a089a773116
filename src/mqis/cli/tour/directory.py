"""Steps of the live tour: discovery, logon, and creating a queue of another site."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from time import monotonic

from mqis.cli.output import cell, table
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.site import WAIT_S, Tour, has
from mqis.client.directory import DirectoryClient
from mqis.client.discovery import Discovered, discover, grounds
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.directory.objects import name_key
from mqis.protocol.errors import DirectoryError
from mqis.runtime.discovery.responder import PORT
from mqis.texts import duration
from mqis.wire.hresult import name_of
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

QUEUE = ObjectType.QUEUE
#: The queue, a backup controller of another site, and the authority for the queue.
MADE, _AT, _AUTHORITY = "C14\\testq", "ber-dir2", "chi-dir1"
_LABEL = "Made far away"
_ATTEMPTS = 10
_DISCOVERY_S = 3.0


async def directory_steps(guide: Guide, tour: Tour) -> None:
    found = await _discovery(guide, tour)
    await _logon(guide, tour, found)
    await _create_far_away(guide, tour)


# --- discovery ------------------------------------------------------------------------------------


async def _discovery(guide: Guide, tour: Tour) -> NodePlace:
    """Discovers a directory server without any configured address."""
    guide.step("Discovery", "a client without a configured server finds one by broadcast (MS-MQSD)")
    by_address = {node.address: node for node in tour.nodes}
    broadcasts = len(by_address) > 1 and all(n.discovery_port == PORT for n in tour.nodes)
    ours: list[NodePlace] = []
    with guide.waiting("waiting for answers"):
        for _ in range(_ATTEMPTS):
            found = await _discover(tour, broadcasts=broadcasts)
            # Servers of another enterprise on this computer receive the broadcast as well.
            ours = [by_address[r.source] for r in found.responders if r.source in by_address]
            if ours and _is_complete(found, tour):
                break
            await asyncio.sleep(1.0)  # a server may answer with a list that is some seconds old
    listed = ", ".join(found.queue_manager.directory_servers)
    where = "a broadcast to 127.255.255.255" if broadcasts else "a datagram to each (no broadcast)"
    guide.confirm(
        f"{where}: {ours[0].address if ours else 'nobody'} answers, and lists {listed}",
        bool(ours) and found.finished.success and _is_complete(found, tour),
        saw=f"answers of {[str(r.source) for r in found.responders]}, a list of {listed or 'none'}",
        expected="an answer of ours, and all servers of one of our sites",
    )
    return ours[0]


def _is_complete(found: Discovered, tour: Tour) -> bool:
    """True if the list holds exactly the servers of one of our sites."""
    listed = sorted(map(name_key, found.queue_manager.directory_servers))
    return listed in [sorted(map(name_key, names)) for names in _by_site(tour).values()]


def _by_site(tour: Tour) -> dict[str, list[str]]:
    """The names of our servers, by site."""
    sites: dict[str, list[str]] = {}
    for node in sorted(tour.nodes, key=lambda node: node.name):
        sites.setdefault(node.site, []).append(node.name)
    return sites


async def _discover(tour: Tour, *, broadcasts: bool) -> Discovered:
    endpoints = [(node.address, node.discovery_port) for node in tour.nodes]
    where = grounds(["127.0.0.1"]) if broadcasts else grounds((), endpoints)
    return await discover(where, timeout_s=_DISCOVERY_S)


# --- logon ----------------------------------------------------------------------------------------


async def _logon(guide: Guide, tour: Tour, found: NodePlace) -> None:
    guide.step("Logon", f"a change at that server: by an anonymous user, and by {tour.user}")
    address = ServerAddress(found.address, mapper_port=found.mapper_port)
    async with await DirectoryClient.connect([address]) as nobody:
        sites = await nobody.known_servers()
        listed = ", ".join(f"{site.site_name} {len(site.servers)}" for site in sites)
        guide.confirm_equal(
            f"its endpoint mapper (port {found.mapper_port}) tells the port; the directory servers "
            f"by site: {listed}",
            {site.site_name: sorted(server.name for server in site.servers) for site in sites},
            _by_site(tour),
        )
        code = await _refusal(nobody)
    refused = name_of(code)
    guide.confirm_equal(
        f"an anonymous user cannot create a queue: {refused}", refused, "MQ_ERROR_ACCESS_DENIED"
    )
    async with tour.client(found.name) as client:
        port = await client.server_port()
    guide.confirm_equal(
        f"{tour.user} logs on by NTLM; calls are encrypted, and {found.name} signs its answers",
        port,
        found.rpc_port,
    )


async def _refusal(nobody: DirectoryClient) -> int:
    try:
        await nobody.create(QUEUE, MADE, _labelled(_LABEL))
    except DirectoryError as error:
        return error.hresult
    return 0


# --- a change -------------------------------------------------------------------------------------


async def _create_far_away(guide: Guide, tour: Tour) -> None:
    guide.step(
        "A queue far away",
        f"{MADE} belongs to Chicago, and is created at {_AT}, a backup in Berlin",
    )
    before = (await tour.status(_AT)).counters["forwarded"]
    made_before = (await tour.status(_AUTHORITY)).counters["changes_made"]
    async with AsyncExitStack() as stack:
        readers = {
            node.name: await stack.enter_async_context(
                tour.client(node.name, level=AuthLevel.INTEGRITY)
            )
            for node in tour.nodes
        }
        async with tour.client(_AT) as client:
            began = monotonic()
            made = await client.create(QUEUE, MADE, _labelled(_LABEL))
            answered = monotonic() - began
        times = await asyncio.gather(
            *(_wait_for_queue(reader, began) for reader in readers.values())
        )
        read = {name: await _identity(reader) for name, reader in readers.items()}
    forwarded = (await tour.status(_AT)).counters["forwarded"] - before
    decided = (await tour.status(_AUTHORITY)).counters["changes_made"] - made_before
    guide.confirm_equal(
        f"{_AT} forwarded it, {_AUTHORITY} decided, and the client had its answer after "
        f"{duration(answered)}: {made}",
        {"forwarded": forwarded, "decided": decided},
        {"forwarded": 1, "decided": 1},
    )
    shown = table(*readers)
    shown.add_row(*(cell(duration(seconds)) for seconds in times))
    guide.show(shown)
    guide.confirm_equal(
        f"all five have it {duration(max(times))} after the client asked, with its label",
        read,
        dict.fromkeys(readers, (made, _LABEL)),
    )


async def _identity(reader: DirectoryClient) -> tuple[object, object] | None:
    """The identifier and the label of the queue at one server; None if it is not there."""
    try:
        found = await reader.get(QUEUE, [PropId.Q_INSTANCE, PropId.Q_LABEL], path=MADE)
    except DirectoryError:
        return None
    return found[PropId.Q_INSTANCE].value, found[PropId.Q_LABEL].value


async def _wait_for_queue(reader: DirectoryClient, began: float) -> float:
    """Waits until this server has the queue; returns the seconds since the request."""
    while not await has(reader, QUEUE, MADE) and monotonic() < began + WAIT_S:
        await asyncio.sleep(0.002)
    return monotonic() - began


def _labelled(label: str) -> dict[int, PropVariant]:
    return props({PropId.Q_LABEL: label})
