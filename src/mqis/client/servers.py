"""The addresses of directory servers, and the lookup of their ports (MS-MQDS 3.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mqis.protocol.rpc.faults import BindFaultError, FaultStatus, RpcConnectionError, RpcFault
from mqis.runtime.rpc.rpc_client import RpcClient, UnreachableError
from mqis.runtime.rpc.typed import invoke
from mqis.texts import host_port
from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.ndr import ContextHandle
from mqis.wire.rpc import epmapper
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.tower import Tower

MAPPER_PORT = 135


class NoServerError(RpcConnectionError):
    """No known directory server could be reached; the text has each one's error."""

    #: The error of each server that was tried.
    errors: tuple[Exception, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[tuple[object, Exception]]) -> NoServerError:
        """The error for servers that were tried, each with its own error."""
        details = "; ".join(located(server, error) for server, error in errors)
        made = cls(f"no directory server answers; {details}")
        made.errors = tuple(error for _, error in errors)
        return made


def located(server: object, error: Exception) -> str:
    """Returns the error's text with the address of its server, exactly once."""
    if isinstance(error, UnreachableError):
        return f"{error.address}: {error.reason}"
    named = isinstance(error, RpcConnectionError) and error.names_peer
    return str(error) if named else f"{server}: {error}"


class LogonRefusedError(RpcConnectionError):
    """The server does not accept the caller's credentials."""

    @classmethod
    def by(cls, server: object, error: Exception, user: object = "") -> LogonRefusedError:
        """The error of a server that refused a logon, with advice and the fault that it sent."""
        whose = f" of {user}" if user else ""
        hint = "check the name and the password; its audit log says more"
        made = cls(f"{server} refused the logon{whose}: {hint} ({error})")
        made.names_peer = True
        return made


#: The faults by which a server says that it does not accept the caller's credentials.
_LOGON_FAULTS = (
    FaultStatus.ACCESS_DENIED,
    FaultStatus.SEC_PKG_ERROR,
    FaultStatus.CONTEXT_EXPIRED,
)


def is_logon_refused(error: Exception) -> bool:
    """Returns whether an error tells that a server does not accept the caller's credentials."""
    if isinstance(error, RpcFault | BindFaultError):
        return error.status in _LOGON_FAULTS
    if isinstance(error, NoServerError):
        return any(map(is_logon_refused, error.errors))
    return isinstance(error, LogonRefusedError)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A directory server. Without ``port`` the client asks its endpoint mapper.

    ``addresses`` are those that a directory lists for it; they are tried if ``host`` fails.
    """

    host: str
    port: int | None = None
    mapper_port: int = MAPPER_PORT
    addresses: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """Parses ``HOST`` or ``HOST:PORT``, with brackets around an IPv6 address."""
        host, colon, port = text.rpartition(":")
        if not colon or (host.count(":") and not host.endswith("]")):
            return cls(text.strip("[]"))
        if not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{port!r} is not a port (1 to 65535)")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return host_port(self.host, self.port)


async def find_port(
    server: ServerAddress, interface: SyntaxId, timeout_s: float, host: str | None = None
) -> int:
    """Asks the endpoint mapper of a host for the port of an interface (ept_map)."""
    host = host or server.host
    if server.port is not None:
        return server.port
    mapper = epmapper.EPMAPPER
    tower = Tower.tcp(interface, 0, "0.0.0.0")
    request = epmapper.MapAsked(
        Guid.NULL, epmapper.TowerOctets(tower.to_bytes()), ContextHandle.NULL, 4
    )
    try:
        async with await RpcClient.connect(
            host,
            server.mapper_port,
            [mapper.syntax],
            transfers=(NDR20, NDR64),
            timeout_s=timeout_s,
        ) as client:
            room = {"max_towers": request.max_towers}
            found = await invoke(
                client, mapper, epmapper.EPT_MAP, request, given=room, timeout_s=timeout_s
            )
    except (BindFaultError, RpcFault) as error:
        # It was asked anonymously, so this is no refused logon.
        raise RpcConnectionError(f"the endpoint mapper refused the question: {error}") from error
    for octets in found.towers:
        if octets is not None:
            try:
                port = Tower.from_bytes(octets.octets).port
            except WireError:
                continue
            if port:
                return port
    raise RpcConnectionError(f"{host} does not serve {interface}")
