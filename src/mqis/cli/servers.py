"""``mqis servers``: lists the directory servers that a server knows."""

from __future__ import annotations

from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import JsonOption, spread
from mqis.cli.output import cell, console, print_json, table


@spread
def servers(
    *,
    access: OptionalLogonOptions,
    json: JsonOption = False,
) -> None:
    """List the directory servers of every site, the authority of each site first."""
    with connected(access.login()) as remote:
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
