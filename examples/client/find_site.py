"""Prints the sites of machines, and the directory servers there.

Usage: python -m examples.client.find_site --server HOST MACHINE...
"""

from __future__ import annotations

from examples.client.connecting import connect, parser, run
from mqis.client import DirectoryClient, DirectoryError, QueueManager, Site


async def sites_of(directory: DirectoryClient, machine: str) -> list[str]:
    """The names of the sites that a machine belongs to."""
    try:
        found = await directory.read(QueueManager, computer_name=machine)
    except DirectoryError as error:
        raise ValueError(f"{machine}: {error}") from error
    names = []
    for identifier in found.site_identifier_list or ():
        site = await directory.read(Site, identifier=identifier)
        names.append(site.name or str(identifier))
    return names


async def main() -> None:
    options = parser(__doc__)
    options.add_argument("machine", nargs="+")
    given = options.parse_args()
    async with await connect(given.server) as directory:
        servers = {
            site.site_name: ", ".join(server.name for server in site.servers)
            for site in await directory.known_servers()
        }
        for machine in given.machine:
            for site in await sites_of(directory, machine):
                print(f"{machine}: {site}, served by {servers.get(site, 'nobody')}")


if __name__ == "__main__":
    run(main())
