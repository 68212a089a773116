"""The settings of the console."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from mqis.views.console.server_places import Places
from mqis.views.console.shown_errors import MqisError
from mqis.views.console.visitor_rights import Guest

LOOPBACK = "127.0.0.1"
PORT = 8180


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    places: Places
    #: The directory of the pipeline's tables and report.
    tables: Path | None = None
    listen: str = LOOPBACK
    #: 0: any free port.
    port: int = PORT
    #: Use another port if that one is busy.
    any_port: bool = False
    #: Host names that browsers may use, besides the address.
    hosts: tuple[str, ...] = ()
    #: Other computers may connect.
    allow_remote: bool = False
    certificate: Path | None = None
    key: Path | None = None
    #: Servers have to sign their answers to logged-in users.
    verify: bool = True
    #: The identity of visitors without a login.
    guest: Guest = field(default_factory=Guest)
    #: The token that the first request of a browser on this computer must have.
    token: str = field(default="", repr=False)
    idle_s: float = 15 * 60
    lifetime_s: float = 8 * 3600
    most_sessions: int = 64
    most_live: int = 32
    most_live_per_address: int = 16
    live_every_s: float = 1.0
    #: The charts of the overview: the time between samples, and their number.
    sample_every_s: float = 10.0
    most_samples: int = 360
    #: Login attempts in a minute, by address, and by name at an address.
    logins_per_address: int = 20
    logins_per_name: int = 6
    most_connections: int = 256
    most_connections_per_address: int = 64
    #: Timeouts: for a whole request to arrive, and for a browser to read on.
    request_s: float = 10.0
    read_s: float = 30.0
    #: Requests in a second, by address.
    requests_per_address: int = 100
    #: Pages that are made concurrently.
    most_pages: int = 16
    allowed: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if not is_loopback(self.listen) and not self.allow_remote:
            raise MqisError(
                f"{self.listen} can be reached from other computers: give --allow-remote if you "
                "want that"
            )
        if not is_loopback(self.listen) and not self.guest.is_anonymous:
            raise MqisError(
                "--as needs a loopback address: users of other computers have to log in"
            )
        if (self.certificate is None) is not (self.key is None):
            raise MqisError("--certificate and --key must be given together")
        names = {*self.hosts, self.listen}
        if is_loopback(self.listen):
            names |= {"localhost", "127.0.0.1", "::1"}
        object.__setattr__(self, "allowed", frozenset(name.lower() for name in names))

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    @property
    def login_required(self) -> bool:
        """True if even reading needs a login, because other computers can connect."""
        return not is_loopback(self.listen)

    @property
    def token_required(self) -> bool:
        """True for a loopback address, which other users of this computer can connect to."""
        return is_loopback(self.listen)


def is_loopback(address: str) -> bool:
    """True for a loopback address; False for a name, which may resolve to something else."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
