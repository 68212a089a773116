"""What the console is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from mqis.views.console.faults import MqisError
from mqis.views.console.places import Places
from mqis.views.console.rights import Guest

LOOPBACK = "127.0.0.1"
PORT = 8180


class ConsoleError(MqisError):
    """The console cannot start: why, and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    places: Places
    #: Where the pipeline's tables and its report are.
    tables: Path | None = None
    listen: str = LOOPBACK
    #: 0: one that is free.
    port: int = PORT
    #: Whether another port will do where that one is busy.
    any_port: bool = False
    #: Names under which browsers may ask for it, besides its address.
    hosts: tuple[str, ...] = ()
    #: Somebody said that other computers may connect.
    allow_remote: bool = False
    certificate: Path | None = None
    key: Path | None = None
    #: Whether servers have to sign their answers to who logs in.
    verify: bool = True
    #: Who a visitor is that has not logged in.
    guest: Guest = field(default_factory=Guest)
    #: What the address has to hold that a browser on this computer asks with first.
    token: str = field(default="", repr=False)
    idle_s: float = 15 * 60
    lifetime_s: float = 8 * 3600
    most_sessions: int = 64
    most_live: int = 32
    most_live_per_address: int = 16
    live_every_s: float = 1.0
    #: Attempts to log in that one address, and one name, has in a minute.
    logins_per_address: int = 20
    logins_per_name: int = 6
    most_connections: int = 256
    most_connections_per_address: int = 64
    #: For a request to come whole, and for a browser to read on.
    request_s: float = 10.0
    read_s: float = 30.0
    #: Requests that one address has in a second.
    requests_per_address: int = 100
    #: Pages that are made at a time.
    most_pages: int = 16
    allowed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if not is_loopback(self.listen) and not self.allow_remote:
            raise ConsoleError(
                f"{self.listen} can be reached from other computers: say --allow-remote if that "
                "is meant"
            )
        if not is_loopback(self.listen) and not self.guest.is_anonymous:
            raise ConsoleError(
                "--as is for a console on this computer: who comes from elsewhere logs in"
            )
        if (self.certificate is None) is not (self.key is None):
            raise ConsoleError("--certificate and --key belong together")
        names = {*self.hosts, self.listen}
        if is_loopback(self.listen):
            names |= {"localhost", "127.0.0.1", "::1"}
        object.__setattr__(self, "allowed", frozenset(name.lower() for name in names))

    @classmethod
    def of_run(cls, run: Path, port: int = PORT) -> Settings:
        """The enterprise of a run directory, at this port or another that is free."""
        return cls(Places(run), run / "tables", port=port, any_port=True)

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    @property
    def login_required(self) -> bool:
        """To read, too, where others can connect."""
        return not is_loopback(self.listen)

    @property
    def token_required(self) -> bool:
        """On this computer, where other users can connect."""
        return is_loopback(self.listen)


def is_loopback(address: str) -> bool:
    """Only addresses: what a name stands for can change."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
