"""The sides of ``mqis diff`` as users write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mqis.cli.enterprise import DEFAULT_RUN
from mqis.cli.login import OptionalLogonOptions, connected
from mqis.cli.options import refuse_password
from mqis.cli.output import print_warning
from mqis.config.nodes import FILE as NODES
from mqis.config.nodes import NodePlace, load_nodes
from mqis.files import is_sqlite_file
from mqis.storage.journal.past import PastMoment
from mqis.views.comparison.exported import exported_side
from mqis.views.comparison.past import past_side
from mqis.views.comparison.side import DirectorySide
from mqis.views.comparison.stored import stored_side

SERVER = "server:"
_URLS = ("sqlite:", "postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class ServerSides:
    """The options for sides that are servers, and the passwords that the user has given."""

    access: OptionalLogonOptions
    permissions: bool
    #: A run directory, whose servers can be named.
    run: Path = DEFAULT_RUN
    secrets: dict[str, str] = field(default_factory=dict, repr=False)

    @contextmanager
    def opened(self, name: str) -> Iterator[DirectorySide]:
        """Opens a server. One of the run directory is read from its store, unless a user is given:
        an anonymous user would not see all of it."""
        place, label = self._place(name), f"{SERVER}{name}"
        if place is not None and place.store and self._is_unasked:
            with stored_side(place.store, label) as side:
                yield side
            return
        address = name if place is None else place.rpc_address
        with self._asked(address, label) as side:
            yield side

    @property
    def _is_unasked(self) -> bool:
        return self.access.is_nobody and not self.access.anonymous

    @contextmanager
    def _asked(self, address: str, label: str) -> Iterator[DirectorySide]:
        from mqis.cli.served import served_side  # noqa: PLC0415 -- only servers need it

        login = replace(self.access, server=[address]).login()
        user = "an anonymous user" if login.name is None else login.who
        with connected(login, self.secrets) as remote:
            yield served_side(remote, label, user, permissions=self.permissions)

    def _place(self, name: str) -> NodePlace | None:
        """The server of the run directory that has this name, if there is one."""
        if not (self.run / NODES).is_file():
            return None
        return next((n for n in load_nodes(self.run) if n.name.lower() == name.lower()), None)


@contextmanager
def opened_side(text: str, servers: ServerSides) -> Iterator[DirectorySide]:
    """Opens what ``text`` names: an export, a store, a server, or a journal at a moment."""
    if text.startswith(_URLS):
        refuse_password(text)
        with stored_side(text) as side:
            yield side
    elif is_sqlite_file(Path(text)):
        with stored_side(f"sqlite:{text}") as side:
            yield side
    elif (found := _journal(text)) is not None:
        with past_side(*found) as side:
            yield side
    elif text.startswith(SERVER):
        with servers.opened(text.removeprefix(SERVER)) as side:
            yield side
    else:
        with exported_side(Path(text), print_warning) as side:
            yield side


def _journal(text: str) -> tuple[Path, PastMoment] | None:
    """The directory of a journal and a moment, if ``text`` names them: JOURNAL[@MOMENT]."""
    path, at, moment = text.rpartition("@")
    if not at or Path(text).exists():
        path, moment = text, ""
    if not Path(path).is_dir():
        return None
    directory = Path(path)
    inside = directory / "journal"  # of a server's own directory
    chosen = inside if not list(directory.glob("*.mqj")) and inside.is_dir() else directory
    return chosen, PastMoment.parse(moment) if moment else PastMoment()
