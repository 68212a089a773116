"""A process that serves "shapes": an endpoint mapper, and the service on another port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from examples.shapes.interface import SYNTAX
from examples.shapes.service import ShapesService
from mqis.protocol.authentication import AuthLevel
from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.rpc.builtin import EndpointMapperService, ManagementService
from mqis.runtime.rpc.rpc_server import RpcServer
from mqis.wire.security.sid import Sid

#: The one account of the example. A real server keeps hashes in its accounts file.
DOMAIN, USER, PASSWORD = "EXAMPLE", "alice", "wonderland"
ANNOTATION = "Every shape of NDR"


@dataclass(frozen=True, slots=True)
class Host:
    address: str
    mapper_port: int
    port: int
    service: ShapesService
    server: RpcServer


@asynccontextmanager
async def hosted(
    address: str = "127.0.0.1", port: int = 0, mapper_port: int = 0
) -> AsyncIterator[Host]:
    """Runs both servers during the block; port 0 means any free port."""
    account = Account(DOMAIN, USER, Sid.parse("S-1-5-21-1-2-3-1000"), nt_hash(PASSWORD))
    authenticator = PyspnegoAuthenticator(MemoryAccounts([account]), "SHAPES", DOMAIN)
    registry = EndpointRegistry()
    service, entropy = ShapesService(), SystemEntropy()
    management = ManagementService(lambda: server.endpoint, principal=f"{DOMAIN}\\{USER}")
    # It accepts every level, as it only tells callers who they are; real servers require more.
    server = RpcServer(
        [service, management],
        entropy,
        authenticator=authenticator,
        min_level=AuthLevel.CONNECT,
    )
    mapper_management = ManagementService(lambda: mapper.endpoint)
    mapper = RpcServer(
        [EndpointMapperService(registry), mapper_management], entropy, authenticator=authenticator
    )
    async with server, mapper:
        bound = await server.listen(address, port)
        mapper_bound = await mapper.listen(address, mapper_port)
        registry.insert(Registration(SYNTAX, bound, address, ANNOTATION))
        yield Host(address, mapper_bound, bound, service, server)
