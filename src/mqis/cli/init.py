"""``mqis init``: writes a first configuration, and a new enterprise if asked for."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.options import JsonOption, ListenOption
from mqis.cli.output import print_json, print_note, say
from mqis.config.claims import claimed_store
from mqis.config.errors import ConfigError
from mqis.config.file import DEFAULT_NAME, override, relative, write_config
from mqis.config.sections import Config
from mqis.files import is_open_to_others, make_private_directory, system_reason
from mqis.runtime.node.signer import MachineKey
from mqis.server.founding import found
from mqis.server.identity import server_name


def init(
    path: Annotated[Path, typer.Option(help="The file to write.")] = Path(DEFAULT_NAME),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    enterprise: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Found a new enterprise with this server as its PEC.",
            show_default=False,
        ),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The first site of the new enterprise.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The name of this computer. Default: the host name.",
            show_default=False,
        ),
    ] = None,
    listen: ListenOption = None,
    json: JsonOption = False,
) -> None:
    """Write a configuration in which every key is explained; with --enterprise, found one.

    The files have mode 0600. A missing directory is made, with mode 0700.
    """
    if (enterprise is None) is not (site is None):
        raise typer.BadParameter("--enterprise and --site belong together; give both or neither")
    config = Config()
    if listen is not None:
        config = override(config, {"rpc": {"listen": listen}}, "command line")
    if name is not None:
        config = override(config, {"server": {"name": name}}, "command line")
    if enterprise is not None:
        config = override(
            config,
            {
                "server": {"name": server_name(config), "role": "pec", "site": site},
                "enterprise": {"name": enterprise},
                # The default policy would let everybody replace a server's key.
                "security": {"machine_policy": "owner"},
                # Without a journal, nothing that is deleted could be undeleted.
                "replication": {"journal": "journal"},
            },
            "command line",
        )
    if path.exists() and not force:
        raise ConfigError(f"{path}: this file exists already; --force replaces it")
    _make_home(path.absolute().parent)
    if enterprise is None or site is None:
        write_config(path, config)
        text = f"wrote {path}; edit it, then 'mqis import FILE' fills the store"
        print_json({"config": str(path), "store": None}) if json else say(text)
        return
    placed = relative(config, path)
    with claimed_store(placed.store.url, create=True) as store:
        key = MachineKey.open(Path(placed.replication.key)).public
        found(store, enterprise, site, config.server.name, _published(config.rpc.listen), key=key)
    write_config(path, config)
    if json:
        written = {"config": str(path), "store": placed.store.url}
        print_json({**written, "enterprise": enterprise, "site": site, "name": config.server.name})
        return
    say(f"wrote {path} and a store with {enterprise} and its site {site}; 'mqis serve' serves it")


def _published(address: str) -> str:
    plain = ip_address(address)
    return address if plain.version == 4 and not plain.is_unspecified else ""


def _make_home(home: Path) -> None:
    """Makes the directory; an existing one is the operator's own and keeps its mode."""
    try:
        make_private_directory(home)
        shared = is_open_to_others(home)
    except OSError as error:
        raise ConfigError(
            f"{home}: this directory cannot be made: {system_reason(error)}"
        ) from error
    if shared:
        text = f"{home}: other users may read this directory; 'chmod 700 {home}' prevents it"
        print_note(text)
