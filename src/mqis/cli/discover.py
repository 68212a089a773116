"""``mqis discover``: finds directory servers on the networks of this computer."""

from __future__ import annotations

import asyncio
import os
import sys
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING, Annotated

import typer

from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say
from mqis.texts import host_port
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid

if TYPE_CHECKING:
    from mqis.client.discovery import Discovered
    from mqis.client.servers import ServerAddress
    from mqis.protocol.discovery.events import Event
    from mqis.runtime.discovery.seeker import Ground

#: MS-MQSD 1.9, 3.1.2.1.
PORT = 1801
TIMEOUT_S = 15.0
ENDPOINTS, TIMEOUT = "MQIS_DISCOVERY_ENDPOINTS", "MQIS_DISCOVERY_TIMEOUT"
#: Ignored packets that are shown at most; anybody can send any number.
MAX_DISCARDED = 5


def _guid(text: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def discover(
    *,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Search the network of this local address. May be repeated; networks are searched "
            "one after the other. Default: all networks of this computer; loopback only if there "
            "is no other.",
            show_default=False,
        ),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            envvar=ENDPOINTS,
            help="Ask this server directly, for networks without broadcast. May be repeated.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=65_535, help="The UDP port that servers listen at."),
    ] = PORT,
    enterprise: Annotated[
        Guid | None,
        typer.Option(parser=_guid, metavar="GUID", help="The enterprise of this computer."),
    ] = None,
    site: Annotated[
        Guid | None,
        typer.Option(
            parser=_guid,
            metavar="GUID",
            help="The site of this computer. An answer from its servers ends the search on a "
            "network at once.",
        ),
    ] = None,
    prefer_own_site: Annotated[
        bool,
        typer.Option(
            "--prefer-own-site", help="Ignore servers of other sites if the own site answers."
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", envvar=TIMEOUT, min=0.01, help="The time to wait for a reply."
        ),
    ] = TIMEOUT_S,
    json: JsonOption = False,
) -> None:
    """Find directory servers by broadcast, and show each answer as it arrives.

    Answers are not authenticated: anybody on the network can send one. Treat them as hints until
    logging on to the server succeeds.
    """
    from mqis.client import discovery  # noqa: PLC0415 -- other commands do not wait for it

    where = discovery.grounds(_networks(network), endpoints(endpoint, port), port)
    print_event = _Teller(where)
    found = asyncio.run(
        discovery.discover(
            where,
            enterprise=enterprise or Guid.NULL,
            site=site or Guid.NULL,
            prefer_own_site=prefer_own_site,
            timeout_s=timeout,
            on_event=None if json else print_event,
        )
    )
    if json:
        print_json(as_json(found, where))
        if not found.finished.success:
            raise typer.Exit(1)
        return
    if not found.finished.success:
        raise MqisError(f"no directory server was found: {found.finished.reason}")
    _show(found)


def discovered(mapper_port: int) -> list[ServerAddress]:
    """Finds the servers for ``--discover``: by broadcast, or by asking the endpoints if given."""
    from mqis.client import discovery  # noqa: PLC0415

    known = endpoints(os.environ.get(ENDPOINTS, "").split(), PORT)
    text = os.environ.get(TIMEOUT, str(TIMEOUT_S))
    try:
        timeout_s = float(text)
    except ValueError:
        raise typer.BadParameter(f"${TIMEOUT}: {text!r} is not a number of seconds") from None
    return asyncio.run(
        discovery.discover_servers(endpoints=known, mapper_port=mapper_port, timeout_s=timeout_s)
    )


def _networks(addresses: list[str] | None) -> list[str]:
    for text in addresses or ():
        try:
            IPv4Address(text)
        except AddressValueError:
            raise typer.BadParameter(f"--network {text}: not an IPv4 address") from None
    return addresses or []


def endpoints(words: list[str] | None, port: int) -> list[tuple[str, int]]:
    """Parses endpoints: addresses only, because names would have to be resolved first."""
    found = []
    for word in words or ():
        host, _, chosen = word.partition(":")
        try:
            IPv4Address(host)
        except AddressValueError:
            raise typer.BadParameter(f"--endpoint {word}: not an IPv4 address[:port]") from None
        number = int(chosen) if chosen.isdecimal() else 0 if chosen else port
        if not 0 < number < 65_536:
            raise typer.BadParameter(f"--endpoint {word}: {chosen!r} is not a port (1 to 65535)")
        found.append((host, number))
    return found


class _Teller:
    """Prints each discovery event as a line."""

    def __init__(self, where: list[Ground]) -> None:
        self._grounds = {ground.network.address: ground for ground in where}
        self._discarded = 0

    def __call__(self, event: Event) -> None:
        text = self._line(event)
        if text:
            say(text)
            sys.stdout.flush()

    def _line(self, event: Event) -> str:
        from mqis.protocol.discovery import events  # noqa: PLC0415

        match event:
            case events.RequestBroadcast(network):
                return _asking(self._grounds[network])
            case events.ServerAnswered(_, source, reply) if reply.own_site:
                return f"  {source} answers: it is in this site"
            case events.ServerAnswered(_, source, reply):
                names = ", ".join(server.name for server in reply.servers)
                return f"  {source} answers: site {reply.responding_site_id} has {names}"
            case events.Discarded(_, source, reason):
                self._discarded += 1
                more = "; further ones are not shown" if self._discarded == MAX_DISCARDED else ""
                text = f"  {source} is ignored: {reason}{more}"
                return text if self._discarded <= MAX_DISCARDED else ""
            case events.Passed(_, reason):
                return f"  {reason}"
            case _:
                return ""


def _asking(ground: Ground) -> str:
    targets = ", ".join(host_port(*target) for target in ground.targets)
    if ground.broadcast:
        return f"asking everybody on the network of {ground.network.address} ({targets})"
    return f"asking each configured endpoint, without a broadcast: {targets}"


def _show(found: Discovered) -> None:
    own = [responder.source for responder in found.responders if responder.own_site]
    if own:
        say(f"servers of this site, by address: {', '.join(dict.fromkeys(own))}")
    if found.queue_manager.directory_servers:
        say(f"directory servers: {', '.join(found.queue_manager.directory_servers)}")
    networks = ", ".join(map(str, found.queue_manager.connected_networks))
    say(f"connected networks: {networks}")


def as_json(found: Discovered, where: list[Ground]) -> dict[str, object]:
    return {
        "success": found.finished.success,
        "reason": found.finished.reason,
        "asked": [
            {
                "network": ground.network.address,
                "broadcast": ground.broadcast,
                "targets": [host_port(*target) for target in ground.targets],
            }
            for ground in where
        ],
        "responders": [
            {"network": r.network, "address": r.source, "own_site": r.own_site}
            for r in found.responders
        ],
        "directory_servers": list(found.queue_manager.directory_servers),
        "connected_networks": [str(network) for network in found.queue_manager.connected_networks],
    }
