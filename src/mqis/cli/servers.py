"""``mqis servers``: the directory servers that a server knows."""

from __future__ import annotations

from mqis.cli.login import (
    MAPPER_PORT,
    AnonymousOption,
    DiscoverOption,
    Level,
    LevelOption,
    MapperPortOption,
    Provider,
    ProviderOption,
    ServerOption,
    UserOption,
    VerifyOption,
    connected,
    login,
)
from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, print_json, table


def servers(
    *,
    server: ServerOption = None,
    discover: DiscoverOption = False,
    mapper_port: MapperPortOption = MAPPER_PORT,
    user: UserOption = None,
    level: LevelOption = Level.PRIVACY,
    auth: ProviderOption = Provider.NEGOTIATE,
    anonymous: AnonymousOption = False,
    verify: VerifyOption = True,
    json: JsonOption = False,
) -> None:
    """List the directory servers of every site, the authority of each site first."""
    who = login(
        server,
        mapper_port,
        user,
        level,
        auth,
        anonymous=anonymous,
        verify=verify,
        discover=discover,
    )
    with connected(who) as remote:
        sites = remote.servers()
    if json:
        print_json(
            [{"site": s.site_name, "servers": [spec.name for spec in s.servers]} for s in sites]
        )
        return
    made = table("site", "directory servers")
    for site in sites:
        made.add_row(cell(site.site_name), cell(", ".join(spec.name for spec in site.servers)))
    console().print(made)
