"""Checks that the other servers can be reached: name, port, session, directory, clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress

from mqis.findings import Area, Finding
from mqis.protocol.ports import Store
from mqis.protocol.queueing.limits import QueueingLimits
from mqis.protocol.queueing.queue_session import QueueSession
from mqis.protocol.replication.server_identity import Server
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.runtime.peers import reason_of
from mqis.runtime.rpc.rpc_client import RpcClient
from mqis.runtime.rpc.typed import invoke
from mqis.server.hosts import HostResolver
from mqis.texts import duration, host_port
from mqis.views.doctor.patient import KnownNeighbour, Patient
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.mqds import dscomm
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.interfaces import NDR20
from mqis.wire.rpc.tower import Tower

_PEERS, _CLOCK = Area("peers"), Area("clock")
TIMEOUT_S = 3.0
#: Differences of clocks that are a warning, and an error because Kerberos fails.
_APART_S, _FAR_APART_S = 5.0, 300.0
_MAX_TOWERS = 4


def check(
    patient: Patient, store: Store, me: Server, others: list[KnownNeighbour]
) -> list[Finding]:
    """Checks all neighbours at once, so that only one timeout has to be waited for."""

    async def everybody() -> list[list[Finding]]:
        return await asyncio.gather(*(_check(patient, store, me, other) for other in others))

    if not others:
        return [_PEERS.note("the directory has no other server")]
    return [finding for found in asyncio.run(everybody()) for finding in found]


async def _check(
    patient: Patient, store: Store, me: Server, other: KnownNeighbour
) -> list[Finding]:
    config = patient.config
    resolve = HostResolver(store, config.hosts.entries, config.replication.port)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            host, port = await resolve(other.name)
    except (OSError, TimeoutError, UnicodeError) as error:
        todo = "name it in [hosts], or give its machine object an address"
        return [_PEERS.error(f"{other.name} has no address: {error or 'no answer'}", todo)]
    found = [await _session(me, other, host, port)]
    found += await _directory(patient, other, host)
    return found


async def _session(me: Server, other: KnownNeighbour, host: str, port: int) -> Finding:
    """Opens the first half of a session (MS-MQQB 3.1.5.3): checks identity and acceptance."""
    at = f"{other.name} ({other.role}) at {host_port(host, port)}"
    session = QueueSession(
        me.id, QueueingLimits(), time.monotonic(), initiator=True, remote=other.id
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(session.data_to_send())
                while session.peer is None and session.closed is None:
                    data = await reader.read(4096)
                    if not data:
                        break
                    session.receive(data, time.monotonic())
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        reason = "no answer" if isinstance(error, TimeoutError) else reason_of(error)
        return _PEERS.error(f"{at} cannot be reached: {reason}", "start it, or correct [hosts]")
    except WireError as error:
        return _PEERS.error(f"{at} is not a queue manager: {error}", "correct [hosts]")
    if session.peer is not None:
        return _PEERS.ok(f"{at} accepts sessions of this server")
    todo = (
        "it does not know this server (its directory is old, or it is another enterprise), or "
        "requires a key that the directory does not have"
    )
    return _PEERS.error(
        f"{at} refuses a session: {session.closed or 'it closed the connection'}", todo
    )


# --- the directory service ------------------------------------------------------------------------


async def _directory(patient: Patient, other: KnownNeighbour, host: str) -> list[Finding]:
    port = patient.rpc_ports.get(other.name)
    try:
        if port is None:
            port = await _mapped(host, patient.config.rpc.mapper_port)
        client = await RpcClient.connect(host, port, [dscomm.SYNTAX], timeout_s=TIMEOUT_S)
        await client.close()
    except (RpcFault, RpcConnectionError, WireError) as error:
        todo = "clients cannot use it; this server does not need it to replicate"
        return [_PEERS.warning(f"the directory of {other.name} does not answer: {error}", todo)]
    found = [_PEERS.ok(f"the directory of {other.name} answers at {host_port(host, port)}")]
    from mqis.runtime.authentication.ntlm_clock import clock_difference_s  # noqa: PLC0415 -- slow

    apart = await clock_difference_s(host, port, dscomm.SYNTAX, TIMEOUT_S)
    if apart is not None:
        found.append(_clock(other, apart))
    return found


def _clock(other: KnownNeighbour, apart: float) -> Finding:
    side = "ahead of" if apart > 0 else "behind"
    what = f"the clock of {other.name} is {duration(abs(apart))} {side} this one"
    if abs(apart) > _FAR_APART_S:
        return _CLOCK.error(what, "set both by NTP; Kerberos fails beyond five minutes")
    if abs(apart) > _APART_S:
        return _CLOCK.warning(what, "set both by NTP; times in journals cannot be compared")
    return _CLOCK.ok(what)


async def _mapped(host: str, mapper_port: int) -> int:
    """Asks an endpoint mapper for the port of the directory."""
    tower = epmapper.TowerOctets(Tower.tcp(dscomm.SYNTAX, 0, "0.0.0.0", NDR20).to_bytes())
    request = epmapper.MapAsked(Guid.NULL, tower, ContextHandle.NULL, _MAX_TOWERS)
    client = await RpcClient.connect(
        host, mapper_port, [epmapper.SYNTAX], transfers=[NDR20], timeout_s=TIMEOUT_S
    )
    async with client:
        given = {"max_towers": _MAX_TOWERS}
        found = await invoke(
            client, epmapper.EPMAPPER, epmapper.EPT_MAP, request, given=given, timeout_s=TIMEOUT_S
        )
    for port in _ports(found.towers):
        return port
    raise RpcConnectionError(
        f"the endpoint mapper at {host_port(host, mapper_port)} has no directory"
    )


def _ports(towers: tuple[epmapper.TowerOctets | None, ...]) -> Iterator[int]:
    for octets in towers:
        with suppress(WireError):
            port = None if octets is None else Tower.from_bytes(octets.octets).port
            if port:
                yield port
