"""The enterprise of the live tour, with clients of its servers and its status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace, Nodes
from mqis.enterprise.collected_status import collect
from mqis.enterprise.launch import RunningEnterprise
from mqis.enterprise.plan import RunPlan
from mqis.enterprise.polling import fetch
from mqis.enterprise.roster import roster_of_nodes
from mqis.enterprise.setup import password_of
from mqis.enterprise.status import EnterpriseStatus
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.directory.objects import IDENTIFIER_PROPERTY
from mqis.protocol.errors import DirectoryError
from mqis.runtime.authentication.credentials import LogonCredentials as Secret
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.server.monitoring.status import ServerStatus
from mqis.wire.errors import MqisError
from mqis.wire.mqds.objecttype import ObjectType

WAIT_S = 60.0
_LOOK_S = 0.1


class Tour:
    def __init__(self, enterprise: RunningEnterprise, plan: RunPlan, directory: Path) -> None:
        self.enterprise = enterprise
        self.plan = plan
        self.directory = directory
        self.run = enterprise.run
        #: True once the tour is done and the console stays up until ``ended``.
        self.staying = False
        self.ended = asyncio.Event()

    @property
    def nodes(self) -> Nodes:
        return self.enterprise.nodes

    def node(self, name: str) -> NodePlace:
        return self.nodes.named(name)

    # --- clients ----------------------------------------------------------------------------------

    @property
    def user(self) -> str:
        administrator = self.plan.administrator
        return f"{self.plan.domain_of(administrator)}\\{administrator.name}"

    @asynccontextmanager
    async def client(
        self,
        name: str,
        *,
        level: AuthLevel = AuthLevel.PRIVACY,
        anonymous: bool = False,
        account: str | None = None,
    ) -> AsyncIterator[DirectoryClient]:
        """Connects a client to one server: anonymous, or logged on by NTLM.

        The account is the administrator's if none is named.
        """
        node = self.node(name)
        address = ServerAddress(node.address, node.rpc_port)
        if anonymous:
            async with await DirectoryClient.connect([address]) as nobody:
                yield nobody
            return
        matching = (a for a in self.plan.accounts if a.name == account)
        chosen = next(matching, self.plan.administrator)
        password = password_of(self.run, chosen).read_text(encoding="utf-8").strip()
        initiator = PyspnegoInitiator(Secret(chosen.name, self.plan.domain_of(chosen), password))
        credentials = Credentials(initiator, AuthType.SPNEGO, level, address.host)
        gss = initiator if level is AuthLevel.PRIVACY else None
        async with await DirectoryClient.connect(
            [address], credentials=credentials, gss=gss
        ) as client:
            yield client

    # --- status -----------------------------------------------------------------------------------

    async def status(self, name: str) -> ServerStatus:
        reply = await asyncio.to_thread(fetch, self.node(name).monitor_url)
        if isinstance(reply, str):
            raise MqisError(f"{name} {reply}")
        return reply

    async def converged(self, wait_s: float = WAIT_S) -> EnterpriseStatus:
        """Waits until all servers agree; returns the last status, also if they do not in time."""
        until = monotonic() + wait_s
        while True:
            status = await asyncio.to_thread(collect, roster_of_nodes(self.nodes), None)
            if status.converged or monotonic() > until:
                return status
            await asyncio.sleep(_LOOK_S)


async def has(client: DirectoryClient, kind: ObjectType, path: str) -> bool:
    try:
        await client.get(kind, [IDENTIFIER_PROPERTY[kind]], path=path)
    except DirectoryError:
        return False
    return True
