"""The enterprise of the story: sites, servers, machines and queues, and who plays which part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# fmt: off
_CITIES = (
    "Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Helsinki",
    "Istanbul", "Krakow", "Lisbon", "Madrid", "Naples", "Oslo", "Paris", "Riga", "Stockholm",
    "Turin", "Utrecht", "Vienna",
)
# fmt: on
ENTERPRISE = "Northwind"
_COSTS = (10, 20, 50)
_LABELS = ("Orders", "Invoices", "Shipments", "Payments", "Audit trail")


@dataclass(frozen=True, slots=True)
class StorySite:
    name: str
    servers: tuple[str, ...]
    machines: tuple[str, ...]

    @property
    def code(self) -> str:
        return self.name[:3].lower()

    @property
    def psc(self) -> str:
        return self.servers[0]


@dataclass(frozen=True, slots=True)
class StoryEstate:
    """An enterprise of any size. Each site has a live server; ``machines`` counts these too."""

    sites: int = 20
    machines: int = 200
    queues: int = 3000

    def __post_init__(self) -> None:
        if not 3 <= self.sites <= len(_CITIES):
            raise ValueError(f"sites: the story needs 3 to {len(_CITIES)}, not {self.sites}")
        if self.machines < 4 * self.sites:
            raise ValueError(f"machines: the story needs four a site, {4 * self.sites} in all")

    @property
    def all_sites(self) -> tuple[StorySite, ...]:
        named = _CITIES[: self.sites]
        servers = {name: self._servers(name) for name in named}
        left = self.machines - sum(map(len, servers.values()))
        return tuple(
            StorySite(name, servers[name], tuple(_apps(name, number, self.sites, left)))
            for number, name in enumerate(named)
        )

    def _servers(self, site: str) -> tuple[str, ...]:
        """Berlin, whose PSC will be lost, has two backup controllers; the others have none."""
        code = site[:3].lower()
        backups = 2 if site == _CITIES[1] else 0
        return tuple(f"{code}-dir{number + 1}" for number in range(1 + backups))

    @property
    def queue_paths(self) -> list[str]:
        hosts = [machine for site in self.all_sites for machine in site.machines]
        return [f"{hosts[n % len(hosts)]}\\q{n // len(hosts):02}" for n in range(self.queues)]

    # --- the parts in the story -------------------------------------------------------------------

    @property
    def pec(self) -> str:
        return self.all_sites[0].psc

    @property
    def lost(self) -> StorySite:
        """The site whose PSC is lost."""
        return self.all_sites[1]

    @property
    def slipped(self) -> StorySite:
        """The site whose machines are deleted by mistake."""
        return self.all_sites[2]

    @property
    def orphaned(self) -> StorySite:
        """The site in which an old tool deletes a machine, and leaves its queues."""
        return self.all_sites[self.sites // 2]

    @property
    def gateless(self) -> StorySite:
        """The site that loses its gate."""
        return self.all_sites[-1]

    @property
    def cloned(self) -> tuple[StorySite, StorySite]:
        """The sites that got machines from the same disk image."""
        return self.all_sites[1], self.all_sites[-1]

    @property
    def clones(self) -> tuple[str, str]:
        first, second = self.cloned
        return f"{first.code}-scan1", f"{second.code}-scan1"

    @property
    def orphaned_machine(self) -> str:
        return self.orphaned.machines[0]

    @property
    def deleted_machines(self) -> tuple[str, ...]:
        """All machines of the site but one, on which clients work meanwhile."""
        return self.slipped.machines[1:]

    @property
    def links(self) -> Iterator[tuple[str, str, int]]:
        """A tree, in which the last site is a leaf, and ties between its branches."""
        names = [site.name for site in self.all_sites]
        for number in range(1, self.sites):
            yield names[number], names[(number - 1) // 2], _COSTS[number % len(_COSTS)]
        for number in range(3, self.sites - 1, 4):
            yield names[number], names[number - 1], _COSTS[number % len(_COSTS)]


def _apps(site: str, number: int, sites: int, left: int) -> Iterator[str]:
    count = left // sites + (number < left % sites)
    return (f"{site[:3].lower()}-app{n + 1}" for n in range(count))


# --- the enterprise file --------------------------------------------------------------------------


def enterprise_file(estate: StoryEstate) -> str:
    """The file for 'mqis up'."""
    return "\n".join(_tables(estate)) + "\n"


def _tables(estate: StoryEstate) -> Iterator[str]:
    yield f'[enterprise]\nname = "{ENTERPRISE}"'
    for site in estate.all_sites:
        yield f'[[site]]\nname = "{site.name}"'
    for first, second, cost in estate.links:
        yield f'[[link]]\nsites = ["{first}", "{second}"]\ncost = {cost}'
    for site in estate.all_sites:
        for name in site.servers:
            role = "pec" if name == estate.pec else "psc" if name == site.psc else "bsc"
            yield f'[[server]]\nname = "{name}"\nsite = "{site.name}"\nrole = "{role}"'
            yield "routing = true"
        for name in site.machines:
            yield f'[[machine]]\nname = "{name}"\nsite = "{site.name}"'
    for number, path in enumerate(estate.queue_paths):
        yield f"[[queue]]\npath = '{path}'\nlabel = \"{_LABELS[number % len(_LABELS)]}\""
    for account in ("admin", "bob"):
        yield f'[[account]]\nname = "{account}"\nadministrator = true'
