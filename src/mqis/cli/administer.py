"""The connection by which 'mqis up' administers the directory servers that it sets up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqis.cli import remote
from mqis.cli.credentials import Login
from mqis.client.servers import ServerAddress
from mqis.config.nodes import NodePlace
from mqis.enterprise.setup import Administrator, Changing

#: Servers that start together on one computer can keep its disk busy for a while.
_TIMEOUT_S = 120.0


@contextmanager
def administer(node: NodePlace, administrator: Administrator) -> Iterator[Changing]:
    """Connects to a directory server as its administrator; implements ``setup.Connect``."""
    address = ServerAddress(node.address, node.rpc_port)
    login = Login((str(address),), domain=administrator.domain, name=administrator.name)
    with remote.connected(login, [address], administrator.password, _TIMEOUT_S) as found:
        yield found
