"""``mqis join``: makes this computer a server of an existing enterprise."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from mqis.admin.join import Membership, Wanted
from mqis.admin.join import join as make_member
from mqis.cli.login import LogonOptions, connected
from mqis.cli.options import ConfigOption, JsonOption, ListenOption, spread
from mqis.cli.output import print_json, say
from mqis.client.servers import ServerAddress
from mqis.config.errors import ConfigError
from mqis.config.file import DEFAULT_NAME, override, read, relative, write_config
from mqis.config.sections import Config
from mqis.config.stores import open_store
from mqis.protocol.queueing.replication_queue import canonical, queue_path
from mqis.protocol.queueing.signing import SigningPolicy
from mqis.protocol.replication.server_identity import Role
from mqis.runtime.node.signer import MachineKey
from mqis.server.identity import seed_text, server_name

_ANY = ("0.0.0.0", "::")


class JoinRole(StrEnum):
    PSC = "psc"
    BSC = "bsc"


@spread
def join(
    *,
    pec: Annotated[str, typer.Option(metavar="NAME", help="The machine name of the PEC.")],
    account: LogonOptions,
    role: Annotated[
        JoinRole,
        typer.Option(
            help="psc: the primary server of a new site; bsc: a backup server of an existing site."
        ),
    ] = JoinRole.PSC,
    site: Annotated[str, typer.Option(metavar="NAME", help="The site; a psc creates it.")],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name of this computer. Default: server.name, else the host name.",
            show_default=False,
        ),
    ] = None,
    listen: ListenOption = None,
    queue_port: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The port for replication (replication.port).", show_default=False
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME=ADDRESS[:PORT]",
            help="The address of a server's queue manager, written to [hosts]. May be repeated. "
            "The PEC's address is taken from --server.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Make this computer a server of an existing enterprise.

    Creates the objects of this server through the PEC, exchanges signing keys with it, and writes
    configuration, key and an empty store, which 'mqis serve' fills by replication. It is safe to
    repeat the command.
    """
    path = Path(DEFAULT_NAME) if config is None else config
    known = read(path) if path.exists() else _new()
    hosts = dict(known.hosts.entries) | _hosts(host or [])
    chosen = _chosen(role, site, name, listen, queue_port)
    known = override(known, {**chosen, "hosts": hosts}, "command line")
    own = name or known.server.name or server_name(known)
    _check_name(own)
    known = override(known, {"server": {"name": own}}, "command line")
    key = MachineKey.open(path.absolute().parent / known.replication.key)
    signed = known.replication.signing is SigningPolicy.REQUIRE
    wanted = Wanted(own, Role(role.value), site, pec, key.public, _published(known), signed)
    login = account.login()
    first = ServerAddress.parse(login.servers[0]).host
    with connected(login) as remote:
        member = make_member(remote, wanted)
    known = override(known, membership(pec, member, hosts, first), "join")
    write_config(path, known)
    url = relative(known, path).store.url
    open_store(url, create=True).close()
    if json:
        placed = {"name": own, "role": role.value, "site": site, "enterprise": member.enterprise}
        print_json({**placed, "config": str(path), "store": url})
        return
    say(
        f"{own} is a {role.value} of {member.enterprise} in site {site}; wrote {path}; "
        "'mqis serve' gets the directory"
    )


def _new() -> Config:
    """The configuration of a new server.

    Only owners may change machines: the default policy would let everybody replace a machine's key.
    """
    first = {"security": {"machine_policy": "owner"}, "replication": {"journal": "journal"}}
    return override(Config(), first, "join")


def _check_name(name: str) -> None:
    try:
        queue_path(name)
    except ValueError as error:
        raise ConfigError(f"server.name: {error}") from None


def _hosts(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        machine, equals, address = word.partition("=")
        if not equals or not machine or not address:
            raise typer.BadParameter(f"--host {word}: write NAME=ADDRESS[:PORT]")
        found[machine] = address
    return found


def _chosen(
    role: JoinRole, site: str, name: str | None, listen: str | None, queue_port: int | None
) -> dict[str, dict[str, object]]:
    given: dict[str, dict[str, object]] = {
        "server": {"role": role.value, "site": site, "name": name},
        "rpc": {"listen": listen},
        "replication": {"port": queue_port},
    }
    return {
        section: {key: value for key, value in keys.items() if value is not None}
        for section, keys in given.items()
    }


def _published(config: Config) -> str:
    """The address that the directory publishes; empty if it is unspecified or IPv6."""
    address = config.replication.listen or config.rpc.listen
    return "" if address in _ANY or ip_address(address).version != 4 else address


def membership(
    pec: str, member: Membership, hosts: Mapping[str, str], server: str
) -> dict[str, dict[str, object]]:
    """The configuration of a new member; addresses from ``hosts`` take precedence."""
    known = {canonical(name) for name in hosts}
    more = {**member.addresses, pec: server}  # this address works: it was just used
    added = {name: at for name, at in more.items() if canonical(name) not in known}
    return {
        "enterprise": {"name": member.enterprise},
        "replication": {
            "pec": pec,
            "psc": member.psc,
            "id": str(member.id),
            "site_id": str(member.site_id),
            "seeds": [seed_text(seed) for seed in member.seeds],
        },
        "hosts": {**hosts, **added},
    }
