r"""Directory servers as text (MS-MQDS 2.2.16, 2.2.17).

    server-spec-list   10srv1.example.com,11srv2.example.com
    server-list        HQ;\10srv1.example.com,11srv2.example.com

Two digits before each name say whether the server supports IP and IPX. A semicolon and one
backslash separate the site from its servers. Any other text raises a ``WireError``, whose offset
counts characters.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.errors import WireError

#: RFC 1034 3.1 limits a DNS name; the other limit is the parser's.
MAX_NAME_CHARACTERS = 255
MAX_SERVERS = 4096

_SITE_END = ";\\"
_FLAGS = {"0": False, "1": True}


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A directory server and the protocols by which it can be reached."""

    name: str
    supports_ip: bool = True
    supports_ipx: bool = False

    def __post_init__(self) -> None:
        fault = _name_fault(self.name, ",")
        if fault is not None:
            raise ValueError(f"server name {fault}")

    @classmethod
    def parse(cls, text: str, offset: int = 0) -> ServerSpec:
        """Parses one entry; ``offset`` is its offset in the whole text, for errors."""
        ip, ipx = _FLAGS.get(text[:1]), _FLAGS.get(text[1:2])
        if ip is None:
            raise WireError("a server entry begins with 0 or 1 for IP", offset)
        if ipx is None:
            raise WireError("the second character of a server entry is 0 or 1 for IPX", offset + 1)
        fault = _name_fault(text[2:], ",")
        if fault is not None:
            raise WireError(f"server name {fault}", offset + 2)
        return cls(text[2:], ip, ipx)

    def __str__(self) -> str:
        return f"{self.supports_ip:d}{self.supports_ipx:d}{self.name}"


def parse_server_specs(text: str, offset: int = 0) -> tuple[ServerSpec, ...]:
    """Parses a server specification list, which has at least one server."""
    if text.count(",") >= MAX_SERVERS:
        raise WireError(f"more than {MAX_SERVERS} servers", offset)
    servers = []
    for entry in text.split(","):
        servers.append(ServerSpec.parse(entry, offset))
        offset += len(entry) + 1
    return tuple(servers)


def format_server_specs(servers: tuple[ServerSpec, ...]) -> str:
    """Formats a server specification list; raises ``ValueError`` if it is empty or too long."""
    if not servers:
        raise ValueError("a server specification list names at least one server")
    if len(servers) > MAX_SERVERS:
        raise ValueError(f"a list has at most {MAX_SERVERS} servers, not {len(servers)}")
    return ",".join(map(str, servers))


@dataclass(frozen=True, slots=True)
class ServerList:
    """A site and its directory servers: one entry of the client's cache."""

    site_name: str
    servers: tuple[ServerSpec, ...]

    def __post_init__(self) -> None:
        fault = _name_fault(self.site_name, _SITE_END)
        if fault is not None:
            raise ValueError(f"site name {fault}")
        if len(self.servers) > MAX_SERVERS:
            raise ValueError(f"a list has at most {MAX_SERVERS} servers, not {len(self.servers)}")

    @classmethod
    def parse(cls, text: str) -> ServerList:
        """Parses a server list; one without servers, which ``str`` makes, is accepted."""
        site_name, separator, rest = text.partition(_SITE_END)
        if not separator:
            raise WireError("no semicolon and backslash follow the site name", len(text))
        fault = _name_fault(site_name, _SITE_END)
        if fault is not None:
            raise WireError(f"site name {fault}", 0)
        at = len(site_name) + len(separator)
        return cls(site_name, parse_server_specs(rest, at) if rest else ())

    def __str__(self) -> str:
        """The text form. The grammar has none for a site without servers: that text ends early."""
        return f"{self.site_name}{_SITE_END}{','.join(map(str, self.servers))}"


def _name_fault(name: str, forbidden: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters, at most {MAX_NAME_CHARACTERS} are allowed"
    wrong = next((c for c in name if c in forbidden or c == "\0"), None)
    return None if wrong is None else f"{name!r} cannot hold {wrong!r}"
